#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// When a rank calls a link silent: a message over it has not been acknowledged for that long.
///
/// - `adaptive`, the default: the smoothed round trip of the link, four of its mean deviations, and the time that the
///   bytes on the way take at the rate that was measured (Jacobson and Karels, as in TCP). Only messages that were sent
///   once, and over the link itself, are measured (Karn). `first` counts until something has been measured, `least`
///   bounds it from below.
/// - `fixed`: always the same time. Each rank judges for itself, and each message anew.
///
/// Both times are above 0.
struct detect {
    bool is_adaptive = true;
    duration first = milliseconds(500);
    duration least = milliseconds(5);

    static constexpr detect adaptive(duration first = milliseconds(500), duration least = milliseconds(5)) {
        return {true, first, least};
    }
    static constexpr detect fixed(duration patience) { return {false, patience, patience}; }

    /// Calls `visit(name, value)` for each option.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("detect", is_adaptive ? 1 : 0);
        visit("first (ns)", first.ns);
        visit("least (ns)", least.ns);
    }

    friend constexpr bool operator==(const detect&, const detect&) = default;
};

/// A topology whose messages pass a silent link by way of another rank. Its schedules say who sends what to whom, as
/// those of any topology; the collectives deliver each of these messages, by whatever way, exactly once. Along the tree
/// that it is, ranks learn that all have what is theirs.
///
/// - `detour(size, one, other, i)`, for i from 0 to size - 3: the ranks that may carry a message between two ranks,
///   each once, the best first. The same in both directions.
/// - `detect`: when a link is silent.
/// - `chunk_bytes`: the size that no message of a large dense vector should exceed, so that little is sent again;
///   above 0.
template <class T>
concept DetouringTopology =
    Topology<T> && TreeTopology<T> && requires(const T& topology, int size, rank_t rank, int i) {
        { topology.detour(size, rank, rank, i) } -> std::same_as<rank_t>;
        { topology.detect } -> std::convertible_to<detect>;
        { topology.chunk_bytes } -> std::convertible_to<std::size_t>;
    };

}}  // namespace rill::RILL_ABI
