// The sizes of frames before they are written, computed by the functions that write them.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/index_coding.hpp>
#include <rill/kernel/index_elias_fano.hpp>
#include <rill/kernel/index_huffman.hpp>
#include <rill/kernel/index_rows.hpp>
#include <rill/stream/detail/payload.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// Returns the bytes of a frame of `count` dense values, header included.
template <Element T>
std::uint64_t dense_frame_bytes(std::size_t count, const coding& codes = {}) {
    return wire::header_bytes + rill::detail::value_length<T>(codes, count);
}

/// Returns the bytes of the frame that `coded_frame` writes for a stream, header included. Exact. Cost: constant,
/// except that packed gaps, the Huffman coding and whole rows take a pass over the indices.
template <Element T, IndexType Index>
std::uint64_t frame_bytes(const stream_view<T, Index>& view, const coding& codes = {}) {
    const coding resolved = rill::detail::resolve(codes, view);
    return dense_frame_bytes<T>(view.count(), resolved) +
           rill::detail::index_length(resolved, view.indices(), view.range());
}

namespace detail {

/// Returns `count` random coordinates of `[0, size)`, in ascending order. A pure function of its arguments.
template <IndexType Index>
std::vector<Index> some_indices(std::size_t count, std::size_t size) {
    std::vector<Index> chosen;
    chosen.reserve(count);
    random_sequence random(random_key{}.derive(count, size));
    std::size_t left = count;
    for (std::size_t i = 0; left > 0; ++i) {  // selects each with the chance that leads to `count` in all
        const double chance = static_cast<double>(left) / static_cast<double>(size - i);
        const double u = (static_cast<double>(random.bits()) + 0.5) * 0x1p-32;
        if (chance < 0.1) {  // skips many at once
            const double skip = std::floor(std::log(u) / std::log1p(-chance));
            i += static_cast<std::size_t>(std::min(skip, static_cast<double>(size - i - left)));
        } else if (u >= chance) {
            continue;
        }
        chosen.push_back(static_cast<Index>(i));
        --left;
    }
    return chosen;
}

/// Returns the bytes of `count` packed gaps of random coordinates of a range of `size`, estimated from a sample if
/// `count` is above 4096.
template <IndexType Index>
std::uint64_t expected_gap_bytes(std::size_t count, std::size_t size) {
    constexpr std::size_t most = 4096;
    const std::size_t sample = std::min(count, most);
    if (sample == 0) return 0;
    const double scale = static_cast<double>(count) / static_cast<double>(sample);
    const auto of = std::max(sample, static_cast<std::size_t>(static_cast<double>(size) / scale));
    const auto indices = some_indices<Index>(sample, of);
    const std::size_t bytes =
        kernel::encoded_index_bytes(index_coding::packed_gaps, std::span<const Index>(indices), {0, of});
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * scale));
}

/// Returns the bytes of the coded indices of `count` random coordinates of `range`.
template <IndexType Index>
std::uint64_t expected_index_bytes(const coding& codes, std::size_t count, segment range) {
    switch (codes.indices) {
        case index_coding::dense: return 0;
        case index_coding::raw: return std::uint64_t{count} * sizeof(Index);
        case index_coding::packed_gaps: return expected_gap_bytes<Index>(count, range.size());
        case index_coding::bitmap: return kernel::encoded_index_bytes(codes.indices, std::span<const Index>{}, range);
        case index_coding::elias_fano: return kernel::elias_fano::size_of(count, range);
        case index_coding::huffman:
            return static_cast<std::uint64_t>(std::llround(kernel::huffman_bitmap::expected_size(count, range)));
        case index_coding::whole_rows: return kernel::whole_rows{codes.row}.size_of(count, range);
        case index_coding::smallest: break;
    }
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const index_coding each : index_codings)
        if (each != index_coding::whole_rows)
            least = std::min(least, expected_index_bytes<Index>({.indices = each}, count, range));
    return least;
}

}  // namespace detail

/// Returns the bytes of a frame of `count` coordinates of `range`, header included, if only their number is known.
///
/// Exact, except for packed gaps and the Huffman coding (and for `smallest` if it chooses one of these), where random
/// coordinates are assumed, and for whole rows, of which none is assumed to be cut by an end of `range`.
template <Element T, IndexType Index>
std::uint64_t sparse_frame_bytes(std::size_t count, segment range, const coding& codes = {}) {
    RILL_EXPECTS(count <= range.size(), "cost::sparse_frame_bytes: more entries than coordinates");
    return dense_frame_bytes<T>(count, codes) + detail::expected_index_bytes<Index>(codes, count, range);
}

}}}  // namespace rill::RILL_ABI::cost
