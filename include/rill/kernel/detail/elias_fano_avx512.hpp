// Elias-Fano's inner loop for x86-64-v4; the results are those of the portable one, bit for bit.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/kernel/detail/avx512.hpp>
#include <rill/kernel/detail/set_bits_avx512.hpp>
#include <rill/kernel/loop.hpp>

#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

/// As `elias_fano_join<std::uint32_t>`, 16 entries at a time: these begin at a whole byte, so that the words that hold
/// their low bits, and the shifts, are the same every time.
class elias_fano_join_avx512 {
  public:
    explicit elias_fano_join_avx512(unsigned width)
        : width_(width),
          steps_(_mm512_maskz_sllv_epi32(every, steps_avx512(), all(width))),
          stride_(all(std::uint32_t{16} << width)),
          fits_halves_(width <= 17) {
        const __m512i bits = _mm512_mullo_epi32(steps_avx512(), all(width));
        if (fits_halves_)  // 15 bits before the entry, and the entry
            word_ = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_maskz_srli_epi32(every, bits, 4), all(0x10001)),
                                     all(0x10000));
        else
            word_ = _mm512_maskz_srli_epi32(every, bits, 5);
        next_ = _mm512_add_epi32(word_, all(1));
        shift_ = _mm512_and_si512(bits, all(fits_halves_ ? 15 : 31));
        back_ = _mm512_sub_epi32(all(32), shift_);  // by 32: nothing is left
        mask_ = all((std::uint32_t{1} << width) - 1);
        bytes_ = std::size_t{2} * width;
        loaded_ = (std::uint64_t{1} << bytes_) - 1;  // width < 32
    }

    /// The places are shifted to where their bits belong in v.
    std::size_t place(std::uint64_t word, std::uint32_t first, std::uint32_t* places) const {
        return keep_set_avx512(word, _mm512_add_epi32(steps_, all(first << width_)), stride_, places);
    }

    void operator()(const std::uint32_t* places, const std::byte* low, std::uint32_t first, std::uint32_t base,
                    std::uint32_t* out, std::size_t count = block) {
        // base + i + v(i) is the place, the low bits, and base + i less i shifted.
        __m512i rest =
            _mm512_sub_epi32(_mm512_add_epi32(steps_avx512(), all(base + first - (first << width_))), steps_);
        const __m512i stride = _mm512_sub_epi32(all(16), stride_);
        std::uint64_t descents = 0;
        for (std::size_t j = 0; j < block; j += 16, rest = _mm512_add_epi32(rest, stride)) {
            const __m512i places_and_low =
                _mm512_add_epi32(_mm512_loadu_si512(places + j), low_bits(low + j / 16 * bytes_));
            const __m512i index = _mm512_add_epi32(places_and_low, rest);
            const __m512i before = _mm512_maskz_alignr_epi32(every, index, last_, 15);
            descents |= std::uint64_t{_mm512_cmple_epu32_mask(index, before)} << j;
            _mm512_storeu_si512(out + j, index);
            last_ = index;
        }
        // What exceeds 32 bits is below what is before it, and the first is below `base`.
        if (first == 0) descents = (descents & ~std::uint64_t{1}) | (out[0] < base ? 1U : 0U);
        if (count < block) descents &= (std::uint64_t{1} << count) - 1;
        descends_ |= descents;
        end_ = out[count - 1] - base - first - static_cast<std::uint32_t>(count - 1);
    }

    bool descends() const { return descends_ != 0; }
    std::uint32_t last() const { return end_; }

  private:
    /// For the forms of intrinsics that mask: in those that do not, g++ 12 finds something uninitialised.
    static constexpr __mmask16 every = 0xFFFF;

    static __m512i all(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

    __m512i low_bits(const std::byte* at) const {
        const __m512i packed = _mm512_maskz_loadu_epi8(loaded_, at);
        if (fits_halves_)  // two halves of a word from where the entry begins
            return _mm512_and_si512(
                _mm512_maskz_srlv_epi32(every, _mm512_maskz_permutexvar_epi16(~__mmask32{0}, word_, packed), shift_),
                mask_);
        const __m512i from =
            _mm512_maskz_srlv_epi32(every, _mm512_maskz_permutexvar_epi32(every, word_, packed), shift_);
        const __m512i more =
            _mm512_maskz_sllv_epi32(every, _mm512_maskz_permutexvar_epi32(every, next_, packed), back_);
        return _mm512_and_si512(_mm512_or_si512(from, more), mask_);
    }

    unsigned width_;
    __m512i steps_, stride_;  // of places
    bool fits_halves_;
    __m512i word_, next_, shift_, back_, mask_;
    __m512i last_ = _mm512_setzero_si512();
    std::uint64_t loaded_;
    std::size_t bytes_;
    std::uint64_t descends_ = 0;
    std::uint32_t end_ = 0;
};

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
