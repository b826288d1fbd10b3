// The inner loop of Elias-Fano decoding for x86-64-v4. Results equal those of the portable loop bit for bit.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/kernel/detail/avx512.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/detail/set_bits_avx512.hpp>

#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Does what `elias_fano_join<std::uint32_t>` does, 16 entries at a time. Sixteen entries begin at a whole byte, so
/// that the positions and shifts of their low bits are the same every time.
class elias_fano_join_avx512 {
  public:
    explicit elias_fano_join_avx512(unsigned width)
        : width_(width),
          steps_(_mm512_maskz_sllv_epi32(every, steps_avx512(), all(width))),
          stride_(all(std::uint32_t{16} << width)),
          fits_halves_(width <= 17) {
        const __m512i bits = _mm512_mullo_epi32(steps_avx512(), all(width));
        if (fits_halves_)  // up to 15 bits before the entry, and the entry
            word_ = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_maskz_srli_epi32(every, bits, 4), all(0x10001)),
                                     all(0x10000));
        else
            word_ = _mm512_maskz_srli_epi32(every, bits, 5);
        next_ = _mm512_add_epi32(word_, all(1));
        shift_ = _mm512_and_si512(bits, all(fits_halves_ ? 15 : 31));
        back_ = _mm512_sub_epi32(all(32), shift_);  // a shift by 32 leaves zero
        mask_ = all((std::uint32_t{1} << width) - 1);
        bytes_ = std::size_t{2} * width;
        loaded_ = (std::uint64_t{1} << bytes_) - 1;  // width < 32
    }

    /// Does what `place_bits` does, or writes the places shifted to their bits of v, whichever is faster on this
    /// machine (1.2 times, with and without VBMI2).
    std::size_t place(std::uint64_t word, std::uint32_t first, std::uint32_t* places) const {
#if defined(RILL_DETAIL_VBMI2)
        return place_bits_avx512(word, first, places);
#else
        return place_shifted_avx512(word, first, width_, places);
#endif
    }

    void operator()(const std::uint32_t* places, const std::byte* low, std::uint32_t first, std::uint32_t base,
                    std::uint32_t* out, std::size_t count = block) {
        // base + i + v(i) is the sum of the shifted place, the low bits, and base + i minus the shifted i.
        __m512i rest =
            _mm512_sub_epi32(_mm512_add_epi32(steps_avx512(), all(base + first - (first << width_))), steps_);
        const __m512i stride = _mm512_sub_epi32(all(16), stride_);
        __m512i last = last_;  // local copies: the compiler must assume that writes may alias members
        std::uint32_t descents = descents_;
        std::uint64_t compared = first == 0 ? ~std::uint64_t{1} : ~std::uint64_t{0};  // entry 0 has no predecessor
        if (count < block) compared &= (std::uint64_t{1} << count) - 1;
        for (std::size_t j = 0; j < block; j += 16, rest = _mm512_add_epi32(rest, stride)) {
            const __m512i high = high_bits(places + j);
            const __m512i v = _mm512_ternarylogic_epi32(high, bits_at(low + j / 16 * bytes_), mask_, high_or_masked);
            const __m512i index = _mm512_add_epi32(v, rest);
            const __m512i before = _mm512_maskz_alignr_epi32(every, index, last, 15);
            // An index that overflows 32 bits is lower than its predecessor.
            descents |= _mm512_mask_cmple_epu32_mask(static_cast<__mmask16>(compared >> j), index, before);
            _mm512_storeu_si512(out + j, index);
            last = index;
        }
        if (first == 0 && out[0] < base) descents |= 1;
        last_ = last;
        descents_ = descents;
        end_ = out[count - 1] - base - first - static_cast<std::uint32_t>(count - 1);
    }

    bool descends() const { return descents_ != 0; }
    std::uint32_t last() const { return end_; }

  private:
    /// Selects all lanes of masked intrinsics; g++ 12 warns about uninitialised values in the unmasked ones.
    static constexpr __mmask16 every = 0xFFFF;

    static __m512i all(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

    /// a | (b & c).
    static constexpr int high_or_masked = 0xF8;

    /// Returns the high bits of 16 entries of `places`.
    __m512i high_bits(const std::uint32_t* places) const {
        const __m512i each = _mm512_loadu_si512(places);
#if defined(RILL_DETAIL_VBMI2)
        return _mm512_maskz_sll_epi32(every, each, _mm_cvtsi32_si128(static_cast<int>(width_)));
#else
        return each;
#endif
    }

    /// Returns the low bits of 16 entries. The bits above them belong to later entries.
    __m512i bits_at(const std::byte* at) const {
        const __m512i packed = _mm512_maskz_loadu_epi8(loaded_, at);
        if (fits_halves_)  // the two 16-bit halves of a word in which the entry begins
            return _mm512_maskz_srlv_epi32(every, _mm512_maskz_permutexvar_epi16(~__mmask32{0}, word_, packed), shift_);
        const __m512i from =
            _mm512_maskz_srlv_epi32(every, _mm512_maskz_permutexvar_epi32(every, word_, packed), shift_);
        const __m512i more =
            _mm512_maskz_sllv_epi32(every, _mm512_maskz_permutexvar_epi32(every, next_, packed), back_);
        return _mm512_or_si512(from, more);
    }

    unsigned width_;
    __m512i steps_, stride_;  // of places that are shifted
    bool fits_halves_;
    __m512i word_, next_, shift_, back_, mask_;
    __m512i last_ = _mm512_setzero_si512();
    std::uint64_t loaded_;
    std::size_t bytes_;
    std::uint32_t descents_ = 0;
    std::uint32_t end_ = 0;
};

}}}  // namespace rill::RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
