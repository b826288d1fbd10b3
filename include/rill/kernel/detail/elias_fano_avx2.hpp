// The inner loop of Elias-Fano decoding for x86-64-v3. Results equal those of the portable loop bit for bit.
#pragma once

#include <rill/core/config.hpp>
#include <rill/kernel/detail/elias_fano_join.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/detail/set_bits.hpp>

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Does what `elias_fano_join<std::uint32_t>` does, 8 entries at a time. Eight entries begin at a whole byte, so that
/// the positions and shifts of their low bits are the same every time.
class elias_fano_join_avx2 {
  public:
    explicit elias_fano_join_avx2(unsigned width) : width_(width), mask_(all((std::uint32_t{1} << width) - 1)) {
        alignas(32) std::uint8_t bytes[32];
        alignas(32) std::uint32_t shifts[8];
        for (unsigned j = 0; j < 8; ++j) {
            // The upper four entries are in a vector of their own, which begins at byte width / 2.
            const unsigned bit = j * width - (j < 4 ? 0 : width / 2 * 8);
            for (unsigned b = 0; b < 4; ++b) bytes[4 * j + b] = static_cast<std::uint8_t>(bit / 8 + b);
            shifts[j] = bit % 8;
        }
        bytes_ = _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
        shifts_ = _mm256_load_si256(reinterpret_cast<const __m256i*>(shifts));
    }

    static std::size_t place(std::uint64_t word, std::uint32_t first, std::uint32_t* places) {
        return place_bits_native(word, first, places);
    }

    void operator()(const std::uint32_t* places, const std::byte* low, std::uint32_t first, std::uint32_t base,
                    std::uint32_t* out, std::size_t count = block) {
        const __m128i width = _mm_cvtsi32_si128(static_cast<int>(width_));
        const __m256i steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        // base + i + v(i) is the sum of the shifted place, the low bits, and base + i less the shifted i.
        __m256i number = _mm256_add_epi32(all(first), steps);
        __m256i last = last_;  // local copies: the compiler must assume that writes may alias members
        std::uint64_t descents = 0, compared = first == 0 ? ~std::uint64_t{1} : ~std::uint64_t{0};
        if (count < block) compared &= (std::uint64_t{1} << count) - 1;
        for (std::size_t j = 0; j < block; j += 8, low += width_) {
            const __m256i place = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places + j));
            const __m256i high = _mm256_sll_epi32(_mm256_sub_epi32(place, number), width);
            const __m256i v = _mm256_or_si256(high, bits_at(low));
            const __m256i index = _mm256_add_epi32(_mm256_add_epi32(v, number), all(base));
            const __m256i before = _mm256_alignr_epi8(index, _mm256_permute2x128_si256(last, index, 0x21), 12);
            // An index that overflows 32 bits is lower than its predecessor.
            const __m256i descent = _mm256_cmpeq_epi32(_mm256_max_epu32(index, before), before);
            descents |= std::uint64_t{static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(descent)))} << j;
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + j), index);
            last = index;
            number = _mm256_add_epi32(number, all(8));
        }
        last_ = last;
        descends_ = descends_ || (descents & compared) != 0 || (first == 0 && out[0] < base);
        end_ = out[count - 1] - base - first - static_cast<std::uint32_t>(count - 1);
    }

    bool descends() const { return descends_; }
    std::uint32_t last() const { return end_; }

  private:
    static __m256i all(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }

    /// Up to this width an entry and the bits before it in its first byte fit 32 bits.
    static constexpr unsigned widest = 25;

    /// The low bits of 8 entries. Reads 16 bytes from byte width / 2 on, unless the width is 0.
    __m256i bits_at(const std::byte* at) const {
        if (width_ - 1 >= widest) return bits_one_by_one(at);
        const __m128i lower = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + width_ / 2));
        const __m256i windows = _mm256_shuffle_epi8(_mm256_set_m128i(upper, lower), bytes_);
        return _mm256_and_si256(_mm256_srlv_epi32(windows, shifts_), mask_);
    }

    /// The same for other widths: 0, and those of very few indices.
    [[gnu::noinline]] __m256i bits_one_by_one(const std::byte* at) const {
        alignas(32) std::uint32_t bits[8] = {};
        if (width_ != 0)
            for (std::size_t j = 0; j < 8; ++j) bits[j] = low_bits<std::uint32_t>(at, j, width_);
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(bits));
    }

    unsigned width_;
    bool descends_ = false;
    std::uint32_t end_ = 0;
    __m256i mask_, bytes_, shifts_;
    __m256i last_ = _mm256_setzero_si256();
};

}}}  // namespace rill::RILL_ABI::kernel::detail

#endif
