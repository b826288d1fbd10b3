// The places of the set bits of a word, for x86-64-v4.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rill::inline RILL_ABI::kernel::detail {

/// As `place_bits`. The places are compressed in a register: into memory is slow on Zen 4.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    const __m512i steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    std::size_t count = 0;
    for (unsigned at = 0; at < 64; at += 16) {
        const auto mask = static_cast<__mmask16>(word >> at);
        const __m512i places = _mm512_add_epi32(steps, _mm512_set1_epi32(static_cast<int>(base + at)));
        _mm512_storeu_si512(out + count, _mm512_maskz_compress_epi32(mask, places));
        count += static_cast<std::size_t>(std::popcount(static_cast<std::uint16_t>(mask)));
    }
    return count;
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif
