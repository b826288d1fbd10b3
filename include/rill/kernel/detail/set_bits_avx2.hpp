// The places of the set bits of a word, for x86-64-v3.
#pragma once

#include <rill/core/config.hpp>
#include <rill/kernel/detail/byte_places.hpp>

#if defined(__AVX2__)

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Does what `place_bits` does, for 32-bit places. Compilers keep the loop over the bytes there, and make each `base`
/// in a register of its own.
inline std::size_t place_bits_avx2(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    const __m256i eight = _mm256_set1_epi32(8);
    __m256i first = _mm256_set1_epi32(static_cast<int>(base));
    std::uint32_t* to = out;
    const auto write = [&](std::size_t byte) {
        const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(places_in_byte.of[byte]));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_add_epi32(first, places));
        first = _mm256_add_epi32(first, eight);
        to += std::popcount(byte);
    };
    write(word & 0xFF);
    write(word >> 8 & 0xFF);
    write(word >> 16 & 0xFF);
    write(word >> 24 & 0xFF);
    write(word >> 32 & 0xFF);
    write(word >> 40 & 0xFF);
    write(word >> 48 & 0xFF);
    write(word >> 56);
    return static_cast<std::size_t>(to - out);
}

}}}  // namespace rill::RILL_ABI::kernel::detail

#endif
