#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How the parts of a stream are cut: each part has equally many chunks, alike on all ranks, and a piece is as many of
/// them as have about `entries` entries. Numbers of chunks are powers of two.
struct pieces {
    int chunks = 1;            ///< of each part; 1: nothing is cut
    int at_once = 1;           ///< that a part of the schedule has: one, or all of a part
    std::size_t entries = 1;   ///< of a piece of a contribution
    bool into_stream = false;  ///< the result is taken as a stream

    /// Of a piece of a sum. Contributions are cut finer, because a fold waits for a piece of each rank.
    std::size_t sum_entries() const { return 4 * entries; }

    bool any() const { return chunks > 1; }
    /// Whether each piece travels in a message of its own.
    bool travel_alone() const { return any() && at_once == 1; }

    /// The chunks of the parts that a schedule names.
    part_range chunks_of(part_range scheduled) const { return {scheduled.first * at_once, scheduled.last * at_once}; }
    /// The chunks of the part to which a chunk belongs.
    part_range part_of(int chunk) const {
        const int first = chunk - chunk % chunks;
        return {first, first + chunks};
    }
    /// How many chunks a piece of about `each` entries has where `count` chunks have `total` entries.
    static int size(int count, std::size_t total, std::size_t each) {
        const std::size_t made = std::clamp<std::size_t>(total / each, 1, static_cast<std::size_t>(count));
        return count / static_cast<int>(std::bit_floor(made));
    }
};

}}}  // namespace rill::RILL_ABI::detail
