// Indices as they are: little-endian, in the width of the index type.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/index_check.hpp>
#include <rill/kernel/detail/little_endian.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Indices as they are, little-endian, `sizeof(Index)` bytes each.
struct raw_indices {
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment) {
        return indices.size() * sizeof(Index);
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        RILL_EXPECTS(out.size() >= encoded_size(indices, universe), "raw_indices: too little room for the indices");
        for (std::size_t i = 0; i < indices.size(); ++i)
            detail::store_little(out.data() + i * sizeof(Index), indices[i]);
        return encoded_size(indices, universe);
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices. Call it before allocating room for them.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() % sizeof(Index) != 0 || bytes.size() / sizeof(Index) != count)
            detail::bad_indices("raw", {bytes.size(), " bytes cannot hold ", count});
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t lowest = universe.begin;  // the lowest value that the next index may have
        for (std::size_t i = 0; i < count; ++i) {
            const Index index = detail::load_little<Index>(bytes.data() + i * sizeof(Index));
            if (index < lowest || index >= universe.end) detail::bad_index("raw", i, index, lowest, universe.end);
            out[i] = index;
            lowest = static_cast<std::size_t>(index) + 1;
        }
    }
};

}}}  // namespace rill::RILL_ABI::kernel
