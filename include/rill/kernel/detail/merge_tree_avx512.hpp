// Runs of entries for `merge_tree` with AVX-512.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/core/sparse_view.hpp>
#include <rill/kernel/detail/add_avx512.hpp>
#include <rill/kernel/detail/avx512.hpp>
#include <rill/kernel/detail/merge_tree.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

RILL_DETAIL_AVX512_BEGIN
namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Runs of keys. A key holds the coordinate in its high bits, then the number of the input, then the bits of the value.
/// No two keys are equal, except the padding beyond the end of a run, which has up to a block plus one keys because
/// merging takes blocks of eight.
class key_runs {
  public:
    using entry = std::uint64_t;
    static constexpr std::size_t block = 8;

    explicit key_runs(std::size_t ways) : rank_bits_(static_cast<int>(std::bit_width(ways - 1))) {}

    static constexpr std::size_t room_for(std::size_t count) { return blocks_for(count) * block + 2 * block; }
    static const entry* end_of(const entry* run, std::size_t count) { return run + blocks_for(count) * block; }
    std::uint32_t widest() const { return std::numeric_limits<std::uint32_t>::max() >> rank_bits_; }

    void load(float_pairs x, std::uint32_t base, std::size_t rank, entry* to) const {
        const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        const __m256i first = _mm256_set1_epi32(static_cast<int>(base));
        const __m256i below = _mm256_set1_epi32(static_cast<int>(rank));
        const __m128i shift = _mm_cvtsi32_si128(rank_bits_);
        const std::size_t whole = x.count() / block * block;
        for (std::size_t i = 0; i < whole; i += block) {
            const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.values.data() + i));
            __m256i keys = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.indices.data() + i));
            keys = _mm256_or_si256(_mm256_sll_epi32(_mm256_sub_epi32(keys, first), shift), below);
            _mm512_storeu_si512(
                to + i, _mm512_permutex2var_epi32(_mm512_castsi256_si512(values), order, _mm512_castsi256_si512(keys)));
        }
        for (std::size_t i = whole; i < x.count(); ++i) {
            const std::uint32_t key = (x.indices[i] - base) << rank_bits_ | static_cast<std::uint32_t>(rank);
            to[i] = std::uint64_t{key} << 32 | std::bit_cast<std::uint32_t>(x.values[i]);
        }
        std::fill(to + x.count(), to + blocks_for(x.count()) * block + 1, none);
    }

    static void merge(run_pair<entry> x, run_pair<entry> y) {
        merging in_x(x), in_y(y);
        const std::size_t both = std::min(in_x.steps, in_y.steps);
        for (std::size_t i = 0; i < both; ++i) {
            in_x.step();
            in_y.step();
        }
        for (std::size_t i = both; i < in_x.steps; ++i) in_x.step();
        for (std::size_t i = both; i < in_y.steps; ++i) in_y.step();
        in_x.finish();
        in_y.finish();
    }

    /// Folds 16 keys at a time. Further values at a coordinate are added to the first one, one after the other.
    void fold_to(const entry* run, std::size_t count, std::uint32_t base, sparse_sink<float, std::uint32_t>& out,
                 const addition&) const {
        const __m128i shift = _mm_cvtsi32_si128(rank_bits_);
        const __m512i first = _mm512_set1_epi32(static_cast<int>(base));
        unsigned begun = 0;  // 1 if a sum of the previous group contains the first entry
        for (std::size_t i = 0; i < count; i += group) {
            const auto there = static_cast<__mmask16>(0xFFFFU >> (group - std::min(count - i, group)));
            const __m512i key = coordinates(run + i, shift);
            const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(there, key, coordinates(run + i + 1, shift));
            __m512 sum = _mm512_mask_add_ps(values(run + i), equal, values(run + i), values(run + i + 1));
            __mmask16 more = equal & (equal >> 1 | 0x8000);
            for (std::size_t next = 2; more != 0; ++next) {
                more = _mm512_mask_cmpeq_epi32_mask(more, key, coordinates(run + i + next, shift));
                sum = _mm512_mask_add_ps(sum, more, sum, values(run + i + next));
            }
            const unsigned heads = there & ~(static_cast<unsigned>(equal) << 1 | begun);
            const auto made = static_cast<std::size_t>(std::popcount(heads));
            const auto stored = static_cast<__mmask16>((1U << made) - 1);
            const auto mask = static_cast<__mmask16>(heads);
            _mm512_mask_storeu_epi32(out.indices + out.count, stored,
                                     _mm512_maskz_compress_epi32(mask, _mm512_add_epi32(key, first)));
            _mm512_mask_storeu_ps(out.values + out.count, stored, _mm512_maskz_compress_ps(mask, sum));
            out.count += made;
            begun = static_cast<unsigned>(equal) >> 15;
        }
    }

  private:
    static constexpr std::size_t group = 16;
    static constexpr entry none = std::numeric_limits<entry>::max();

    static constexpr std::size_t blocks_for(std::size_t count) { return (count + block - 1) / block; }

    /// A merge of two runs into one, done like `key_merge`, but to the end of both runs.
    struct merging {
        const entry* a;
        const entry* b;
        entry* to;
        std::size_t steps;
        __m512i highest;

        explicit merging(const run_pair<entry>& x)
            : a(x.a),
              b(x.b),
              to(x.to),
              steps(blocks_for(x.of_a) + blocks_for(x.of_b)),
              highest(_mm512_loadu_si512(next())) {  // if both runs are empty, their padding
            if (steps != 0) --steps;
        }
        [[gnu::always_inline]] void step() {
            const __m512i turned = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
            const __m512i more = _mm512_maskz_permutexvar_epi64(0xFF, turned, _mm512_loadu_si512(next()));
            _mm512_storeu_si512(to, sort_bitonic(_mm512_maskz_min_epu64(0xFF, highest, more)));
            highest = sort_bitonic(_mm512_maskz_max_epu64(0xFF, highest, more));
            to += block;
        }
        void finish() const {
            _mm512_storeu_si512(to, highest);
            to[block] = none;
        }
        [[gnu::always_inline]] const entry* next() {
            const std::size_t from_a = *a <= *b ? 1 : 0;
            const entry* const result = pick(from_a, a, b);
            a += block * from_a;
            b += block - block * from_a;
            return result;
        }
    };

    static __m512i coordinates(const entry* run, __m128i shift) {
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = _mm512_loadu_si512(run), high = _mm512_loadu_si512(run + block);
        return _mm512_maskz_srl_epi32(0xFFFF, _mm512_permutex2var_epi32(low, odd, high), shift);
    }
    static __m512 values(const entry* run) {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i low = _mm512_loadu_si512(run), high = _mm512_loadu_si512(run + block);
        return _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
    }

    int rank_bits_;
};

}}}  // namespace rill::RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
