// Indices as a bitmap over their universe: bit j % 8 of byte j / 8 stands for the coordinate universe.begin + j.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/index_check.hpp>
#include <rill/kernel/detail/set_bits.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Writes indices as one bit for each coordinate of the universe, lowest coordinate first.
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

    /// Throws `protocol_error` unless `bytes` hold `count` indices. Call it before allocating room for them.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() != bytes_of(universe))
            detail::bad_indices("bitmap", {bytes.size(), " bytes, expected ", bytes_of(universe)});
        if (detail::has_bits_behind(bytes, universe.size()))
            detail::bad_indices("bitmap", {"a bit after the last coordinate is set"});
        if (const std::size_t ones = detail::count_ones(bytes); ones != count)
            detail::bad_indices("bitmap", {ones, " bits are set, expected ", count});
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t done = 0;
        for (std::size_t i = 0; i < bytes.size(); i += 8) {
            const std::uint64_t word = detail::word_at(bytes, i);
            detail::place_some(word, static_cast<Index>(universe.begin + 8 * i), out.data() + done, count - done);
            done += static_cast<std::size_t>(std::popcount(word));
        }
    }

  private:
    static std::size_t bytes_of(segment universe) { return detail::bytes_for_bits(universe.size()); }
};

}}}  // namespace rill::RILL_ABI::kernel
