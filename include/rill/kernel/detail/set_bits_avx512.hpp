// The places of the set bits of a word, for x86-64-v4.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/kernel/detail/avx512.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

inline __m512i steps_avx512() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

/// Of numbers that belong to the bits of a word, `numbers` to the first 16 and each further 16 `stride` more, writes
/// those whose bits are set. Returns how many; `out` ends 16 entries behind. Compressed in a register: compressing into
/// memory is slow on Zen 4.
inline std::size_t keep_set_avx512(std::uint64_t word, __m512i numbers, __m512i stride, std::uint32_t* out) {
    const auto ones_below = [word](unsigned bits) { return std::popcount(word << (64 - bits)); };  // no chain of sums
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(word), numbers));
    numbers = _mm512_add_epi32(numbers, stride);
    _mm512_storeu_si512(out + ones_below(16), _mm512_maskz_compress_epi32(static_cast<__mmask16>(word >> 16), numbers));
    numbers = _mm512_add_epi32(numbers, stride);
    _mm512_storeu_si512(out + ones_below(32), _mm512_maskz_compress_epi32(static_cast<__mmask16>(word >> 32), numbers));
    numbers = _mm512_add_epi32(numbers, stride);
    _mm512_storeu_si512(out + ones_below(48), _mm512_maskz_compress_epi32(static_cast<__mmask16>(word >> 48), numbers));
    return static_cast<std::size_t>(std::popcount(word));
}

/// As `place_bits`.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    return keep_set_avx512(word, _mm512_add_epi32(steps_avx512(), _mm512_set1_epi32(static_cast<int>(base))),
                           _mm512_set1_epi32(16), out);
}

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
