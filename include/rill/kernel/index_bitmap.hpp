// Indices as a bitmap over their universe: bit j % 8 of byte j / 8 stands for the coordinate universe.begin + j.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/index_check.hpp>
#include <rill/kernel/little_endian.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace rill::inline RILL_ABI::kernel {

/// Indices as one bit for each coordinate of the universe, lowest first.
struct index_bitmap {
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index>, segment universe) {
        return bytes_of(universe);
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        RILL_EXPECTS(out.size() >= bytes_of(universe), "index_bitmap: too little room for the bitmap");
        std::fill_n(out.begin(), bytes_of(universe), std::byte{0});
        for (const Index index : indices) {
            const std::size_t j = static_cast<std::size_t>(index) - universe.begin;
            out[j / 8] |= static_cast<std::byte>(1U << (j % 8));
        }
        return bytes_of(universe);
    }

    /// Throws `protocol_error` unless `bytes` hold `count` indices; to be called before room for them is made.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() != bytes_of(universe))
            detail::bad_indices(
                "bitmap", std::to_string(bytes.size()) + " bytes, expected " + std::to_string(bytes_of(universe)));
        const std::size_t used = universe.size() % 8;
        if (used != 0 && (std::to_integer<unsigned>(bytes.back()) >> used) != 0)
            detail::bad_indices("bitmap", "a bit behind the last coordinate is set");
        std::size_t ones = 0;
        for (std::size_t i = 0; i < bytes.size(); i += 8)
            ones += static_cast<std::size_t>(std::popcount(word(bytes, i)));
        if (ones != count)
            detail::bad_indices("bitmap", std::to_string(ones) + " bits are set, expected " + std::to_string(count));
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t at = 0;
        for (std::size_t i = 0; i < bytes.size(); i += 8)
            for (std::uint64_t rest = word(bytes, i); rest != 0; rest &= rest - 1)
                out[at++] =
                    static_cast<Index>(universe.begin + i * 8 + static_cast<std::size_t>(std::countr_zero(rest)));
    }

  private:
    static std::size_t bytes_of(segment universe) { return universe.size() / 8 + (universe.size() % 8 != 0 ? 1U : 0U); }

    /// Up to eight bytes from `at` on.
    static std::uint64_t word(byte_view bytes, std::size_t at) {
        if (bytes.size() - at >= 8) return detail::load_little<std::uint64_t>(bytes.data() + at);
        std::byte padded[8] = {};
        std::memcpy(padded, bytes.data() + at, bytes.size() - at);
        return detail::load_little<std::uint64_t>(padded);
    }
};

}  // namespace rill::inline RILL_ABI::kernel
