// Elias-Fano's inner loop for x86-64-v4; the results are those of the portable one, bit for bit.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/kernel/loop.hpp>

#include <immintrin.h>
#include <cstddef>
#include <cstdint>

namespace rill::inline RILL_ABI::kernel::detail {

/// As `elias_fano_join<std::uint32_t>`, 16 entries at a time: these begin at a whole byte, so that the words that hold
/// their low bits, and the shifts, are the same every time.
class elias_fano_join_avx512 {
  public:
    explicit elias_fano_join_avx512(unsigned width) : width_(_mm_cvtsi32_si128(static_cast<int>(width))) {
        const __m512i bits = _mm512_mullo_epi32(steps(), _mm512_set1_epi32(static_cast<int>(width)));
        word_ = _mm512_srli_epi32(bits, 5);
        next_ = _mm512_add_epi32(word_, _mm512_set1_epi32(1));
        shift_ = _mm512_and_si512(bits, _mm512_set1_epi32(31));
        back_ = _mm512_sub_epi32(_mm512_set1_epi32(32), shift_);  // by 32: nothing is left
        mask_ = _mm512_set1_epi32(static_cast<int>((std::uint64_t{1} << width) - 1));
        bytes_ = 2 * width;
        loaded_ = (std::uint64_t{1} << bytes_) - 1;  // width < 32
    }

    void operator()(const std::uint32_t* places, const std::byte* low, std::uint32_t first, std::uint32_t base,
                    std::uint32_t* out, std::size_t count = block) {
        std::uint64_t descents = 0;
        for (std::size_t j = 0; j < block; j += 16) {
            const __m512i number = _mm512_add_epi32(steps(), _mm512_set1_epi32(static_cast<int>(first + j)));
            const __m512i high = _mm512_sub_epi32(_mm512_loadu_si512(places + j), number);
            const __m512i v = _mm512_or_si512(_mm512_sll_epi32(high, width_), low_bits(low + j / 16 * bytes_));
            const __m512i before = _mm512_alignr_epi32(v, last_, 15);
            descents |= std::uint64_t{_mm512_cmplt_epu32_mask(v, before)} << j;
            _mm512_storeu_si512(
                out + j, _mm512_add_epi32(_mm512_add_epi32(v, number), _mm512_set1_epi32(static_cast<int>(base))));
            last_ = v;
        }
        if (count < block) descents &= (std::uint64_t{1} << count) - 1;
        descends_ |= descents;
        end_ = out[count - 1] - base - first - static_cast<std::uint32_t>(count - 1);
    }

    bool descends() const { return descends_ != 0; }
    std::uint32_t last() const { return end_; }

  private:
    static __m512i steps() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

    __m512i low_bits(const std::byte* at) const {
        const __m512i packed = _mm512_maskz_loadu_epi8(loaded_, at);
        const __m512i from = _mm512_srlv_epi32(_mm512_permutexvar_epi32(word_, packed), shift_);
        const __m512i more = _mm512_sllv_epi32(_mm512_permutexvar_epi32(next_, packed), back_);
        return _mm512_and_si512(_mm512_or_si512(from, more), mask_);
    }

    __m128i width_;
    __m512i word_, next_, shift_, back_, mask_;
    __m512i last_ = _mm512_setzero_si512();
    std::uint64_t loaded_;
    std::size_t bytes_;
    std::uint64_t descends_ = 0;
    std::uint32_t end_ = 0;
};

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif
