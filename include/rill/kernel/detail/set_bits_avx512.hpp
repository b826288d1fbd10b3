// The places of the set bits of a word, for x86-64-v4.
#pragma once

#include <rill/core/config.hpp>

#if defined(RILL_DETAIL_AVX512)

#include <rill/kernel/detail/avx512.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

inline __m512i steps_avx512() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

// Places are compressed in registers, because compressing into memory is slow on Zen 4. The stores cost the most,
// because most of them cross a cache line: three stores take half the time of four.
#if defined(RILL_DETAIL_VBMI2)

/// Does what `place_bits` does, for 32-bit places.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    alignas(64) static constexpr auto numbers = [] {
        std::array<std::uint8_t, 64> each{};
        for (std::uint8_t i = 0; i < 64; ++i) each[i] = i;
        return each;
    }();
    const __m512i first = _mm512_set1_epi32(static_cast<int>(base));
    const __m512i places = _mm512_maskz_compress_epi8(word, _mm512_load_si512(numbers.data()));
    const auto write = [first](__m128i sixteen, std::uint32_t* to) {
        _mm512_storeu_si512(to, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(sixteen)));
    };
    const auto count = static_cast<std::size_t>(std::popcount(word));
    write(_mm512_castsi512_si128(places), out);
    write(_mm512_extracti32x4_epi32(places, 1), out + 16);
    write(_mm512_extracti32x4_epi32(places, 2), out + 32);
    if (count > 48) write(_mm512_extracti32x4_epi32(places, 3), out + 48);  // rare, except where nearly all are set
    return count;
}

#else

/// Does what `place_bits` does, with each sum shifted to the left by `up`.
inline std::size_t place_shifted_avx512(std::uint64_t word, std::uint32_t base, unsigned up, std::uint32_t* out) {
    const __m128i upwards = _mm_cvtsi32_si128(static_cast<int>(up));
    const __m512i stride = _mm512_sll_epi32(_mm512_set1_epi32(16), upwards);
    __m512i places =
        _mm512_add_epi32(_mm512_sll_epi32(steps_avx512(), upwards), _mm512_set1_epi32(static_cast<int>(base << up)));
    const auto write = [&](std::uint64_t some, int after) {
        _mm512_storeu_si512(out + after, _mm512_maskz_compress_epi32(static_cast<__mmask16>(some), places));
        places = _mm512_add_epi32(places, stride);
    };
    const auto ones_below = [word](unsigned bit) { return std::popcount(word << (64 - bit)); };  // no chain of sums
    write(word, 0);
    write(word >> 16, ones_below(16));
    write(word >> 32, ones_below(32));
    write(word >> 48, ones_below(48));
    return static_cast<std::size_t>(std::popcount(word));
}

/// Does what `place_bits` does, for 32-bit places.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    return place_shifted_avx512(word, base, 0, out);
}

#endif

}}}  // namespace rill::RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif
