// Adds two sparse vectors of floats with AVX-512, eight keys at a time. Source: Inoue and others, "AA-Sort" (PACT
// 2007), section 4.2.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/core/sparse_view.hpp>
#include <rill/kernel/detail/avx512.hpp>
#include <rill/kernel/detail/pick.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

using float_pairs = sparse_view<float, std::uint32_t>;

/// Sorts eight bitonic keys: they rise and then fall, or fall and then rise.
inline __m512i sort_bitonic(__m512i x) {
    constexpr __mmask8 all = 0xFF;  // masked forms, because g++ 12 warns about the unmasked ones
    __m512i y = _mm512_maskz_shuffle_i64x2(all, x, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xF0, x, y);
    y = _mm512_maskz_permutex_epi64(all, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xCC, x, y);
    y = _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_BADC);
    return _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xAA, x, y);
}

/// Merges the entries of two sparse vectors as keys: the index in the high bits, the value in the low bits. The value
/// bits decide the order of equal indices. This affects a sum only where both values are NaN; there compilers, too, may
/// keep either.
class key_merge {
  public:
    static constexpr std::size_t lanes = 8;
    static constexpr __mmask8 all = 0xFF;  // masked forms, because g++ 12 warns about the unmasked ones

    key_merge(float_pairs a, float_pairs b)
        : a_(a.indices.data()),
          a_values_(a.values.data()),
          a_end_(a_ + a.count()),
          b_(b.indices.data()),
          b_values_(b.values.data()),
          b_end_(b_ + b.count()) {
        const __m512i turned = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        highest_ = _mm512_maskz_permutexvar_epi64(all, turned, load_turned(a_, a_values_));
        a_ += lanes;
        a_values_ += lanes;
    }

    bool has(std::ptrdiff_t entries) const { return a_end_ - a_ >= entries && b_end_ - b_ >= entries; }

    /// Returns the next eight keys in ascending order. It loads from the input whose next index is lower, so that no
    /// later entry is lower than the lower half of the loaded keys.
    [[gnu::always_inline]] __m512i next() {
        const std::size_t from_a = *a_ <= *b_ ? 1 : 0;
        const __m512i more = load_turned(pick(from_a, a_, b_), pick(from_a, a_values_, b_values_));
        const std::size_t of_a = lanes * from_a, of_b = lanes - of_a;
        a_ += of_a;
        a_values_ += of_a;
        b_ += of_b;
        b_values_ += of_b;
        const __m512i lowest = _mm512_maskz_min_epu64(all, highest_, more);
        highest_ = sort_bitonic(_mm512_maskz_max_epu64(all, highest_, more));
        return sort_bitonic(lowest);
    }

    /// The first entry of each input that is not loaded yet.
    const std::uint32_t* a() const { return a_; }
    const std::uint32_t* b() const { return b_; }

  private:
    /// Loads eight keys in descending order.
    static __m512i load_turned(const std::uint32_t* indices, const float* values) {
        const __m512i order = _mm512_setr_epi32(7, 23, 6, 22, 5, 21, 4, 20, 3, 19, 2, 18, 1, 17, 0, 16);
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices));
        return _mm512_permutex2var_epi32(_mm512_castsi256_si512(low), order, _mm512_castsi256_si512(high));
    }

    const std::uint32_t* a_;
    const float* a_values_;
    const std::uint32_t* a_end_;
    const std::uint32_t* b_;
    const float* b_values_;
    const std::uint32_t* b_end_;
    __m512i highest_;
};

/// A sum under construction. Its last entry is always held back, because the next entry may be added to it.
class avx512_sum {
  public:
    static constexpr std::ptrdiff_t least = 2 * key_merge::lanes;

    avx512_sum(float_pairs a, float_pairs b, std::uint32_t* indices, float* values)
        : keys_(a, b), indices_(indices), values_(values) {}

    bool has_next() const { return keys_.has(least); }

    /// Merges 16 more entries and writes all but the last one. Compresses to registers, because compressing to memory
    /// is slow on some processors.
    [[gnu::always_inline]] void step() {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = keys_.next(), high = keys_.next();
        const __m512i index = _mm512_permutex2var_epi32(low, odd, high);
        __m512i value = _mm512_permutex2var_epi32(low, even, high);
        const __m512i before = _mm512_maskz_alignr_epi32(0xFFFF, index, last_index_, 15);
        const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(there_, before, index);
        const __m512 x = _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15));
        const __m512 y = _mm512_castsi512_ps(value);
        value = _mm512_castps_si512(_mm512_mask_add_ps(y, equal, x, y));
        const auto whole = static_cast<__mmask16>(there_ & ~equal);
        _mm512_storeu_si512(indices_ + count_, _mm512_maskz_compress_epi32(whole, before));
        _mm512_storeu_si512(values_ + count_, _mm512_maskz_compress_epi32(
                                                  whole, _mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15)));
        count_ += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(whole)));
        last_index_ = index;
        last_value_ = value;
        there_ = 0xFFFF;
    }

    /// How far each input is consumed, and how many entries of the sum are complete (all but the one that is held
    /// back).
    struct progress {
        std::size_t of_a = 0;
        std::size_t of_b = 0;
        std::size_t count = 0;
    };
    progress done(float_pairs a, float_pairs b) const {
        if (there_ != 0xFFFF) return {};
        const auto kept = static_cast<std::uint32_t>(_mm512_reduce_max_epu32(last_index_));
        return {used_below(kept, a, keys_.a()), used_below(kept, b, keys_.b()), count_};
    }

  private:
    static std::size_t used_below(std::uint32_t index, float_pairs x, const std::uint32_t* loaded) {
        while (loaded != x.indices.data() && loaded[-1] >= index) --loaded;
        return static_cast<std::size_t>(loaded - x.indices.data());
    }

    key_merge keys_;
    __m512i last_index_ = _mm512_setzero_si512(), last_value_ = _mm512_setzero_si512();
    __mmask16 there_ = 0xFFFE;  // no entry is held back before the first one
    std::uint32_t* indices_;
    float* values_;
    std::size_t count_ = 0;
};

/// Adds until one input has few entries left; the caller appends the rest of both. On Zen 4, 16M coordinates, 2.6
/// to 3.4 times as fast as the portable merge of one stream.
inline avx512_sum::progress add_avx512(float_pairs a, float_pairs b, std::uint32_t* indices, float* values) {
    if (a.count() < 2 * key_merge::lanes || b.count() < 2 * key_merge::lanes) return {};
    avx512_sum sum(a, b, indices, values);
    while (sum.has_next()) sum.step();
    return sum.done(a, b);
}

}}}  // namespace rill::RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
