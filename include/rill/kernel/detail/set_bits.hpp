// Finds the places of the set bits of a word: the inner step of every coding that holds a bitmap.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/kernel/detail/byte_places.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/set_bits_avx2.hpp>
#include <rill/kernel/detail/set_bits_avx512.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Returns up to eight bytes from `at` on, as the lowest bytes of a word.
inline std::uint64_t word_at(byte_view bytes, std::size_t at) {
    if (bytes.size() - at >= 8) return load_little<std::uint64_t>(bytes.data() + at);
    std::byte padded[8] = {};
    std::memcpy(padded, bytes.data() + at, bytes.size() - at);
    return load_little<std::uint64_t>(padded);
}

/// Returns how many bits are set.
inline std::size_t count_ones(byte_view bytes) {
    std::size_t ones = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 8)
        ones += static_cast<std::size_t>(std::popcount(word_at(bytes, i)));
    return ones;
}

/// Whether the last byte has a bit set beyond the first `bits` bits.
inline bool has_bits_behind(byte_view bytes, std::size_t bits) {
    return bits % 8 != 0 && (std::to_integer<unsigned>(bytes.back()) >> (bits % 8)) != 0;
}

constexpr std::size_t bytes_for_bits(std::size_t bits) { return bits / 8 + (bits % 8 != 0 ? 1U : 0U); }

/// Places that `place_bits` may write beyond 64: it writes whole vectors, so that appending needs no branch.
inline constexpr std::size_t place_slack = 16;

/// Places in one register. An array that needs two registers is put on the stack by g++ 12 -O2: Elias-Fano is then
/// decoded at 580 instead of 700 M indices/s.
#if defined(__AVX2__)
inline constexpr std::size_t place_lanes = 8;
#else
inline constexpr std::size_t place_lanes = 4;
#endif

/// Writes `base` plus the place of each set bit of `word`, in ascending order; returns their number. `out` holds 64
/// entries and `place_slack`, any of which may be overwritten. Looks up a byte at a time in a table: no branch depends
/// on the bits.
template <class Place>
std::size_t place_bits(std::uint64_t word, Place base, Place* out) {
    std::size_t count = 0;
    for (unsigned at = 0; at < 64; at += 8) {
        const auto byte = static_cast<std::uint8_t>(word >> at);
        const std::uint32_t* const in_byte = places_in_byte.of[byte];
        for (std::size_t first = 0; first < 8; first += place_lanes) {
            Place places[place_lanes];  // a register, which does not overlap `out`
            for (std::size_t j = 0; j < place_lanes; ++j) places[j] = static_cast<Place>(base + in_byte[first + j]);
            for (std::size_t j = 0; j < place_lanes; ++j) out[count + first + j] = places[j];
        }
        base += 8;
        count += static_cast<std::size_t>(std::popcount(byte));
    }
    return count;
}

/// Does what `place_bits` does, with the fastest instructions of this build.
template <class Place>
std::size_t place_bits_native(std::uint64_t word, Place base, Place* out) {
#if defined(RILL_DETAIL_AVX512)
    if constexpr (sizeof(Place) == 4) return place_bits_avx512(word, base, out);
#elif defined(__AVX2__)
    if constexpr (sizeof(Place) == 4) return place_bits_avx2(word, base, out);
#endif
    return place_bits(word, base, out);
}

/// Writes the first `room` places of set bits; `out` ends after `room` entries.
template <class Place>
void place_some(std::uint64_t word, Place base, Place* out, std::size_t room) {
    if (word == 0) return;
    if (room >= 64 + place_slack) {
        place_bits_native(word, base, out);
        return;
    }
    for (std::size_t i = 0; word != 0 && i < room; word &= word - 1)
        out[i++] = static_cast<Place>(base + static_cast<Place>(std::countr_zero(word)));
}

}}}  // namespace rill::RILL_ABI::kernel::detail
