#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// How long a message over a link may stay unacknowledged until the sender calls the link silent. Each rank judges for
/// itself, and each message anew.
///
/// - `adaptive`, the default: a rank measures the longest time in each operation for which it waited for an
///   acknowledgement over the link, since the one before or since it sent. Such times are smoothed. The patience is
///   their mean, plus four times their mean deviation (at least `least`), plus the time that the message's bytes take
///   at the measured rate, there and back (Jacobson and Karels, as in TCP). On a detour it is twice as much, with the
///   bytes of all messages on the way. In the first operation it is `first`, and at least `first` in one with more than
///   four times the bytes of all before.
/// - `fixed`: always the same time.
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
/// those of any topology. The collectives deliver each of these messages exactly once, whatever its way. The topology
/// is also a tree: along it the ranks learn that an operation is over, which is when all have received all messages.
///
/// - `detour(size, one, other, i)`, for i from 0 to size - 3: the ranks that may forward a message between two ranks,
///   each once, the best first. The same in both directions.
/// - `detect`: when a link is silent.
/// - `chunk_bytes`: the most bytes of a message of a large dense vector, so that little is sent again; above 0.
template <class T>
concept DetouringTopology =
    Topology<T> && TreeTopology<T> && requires(const T& topology, int size, rank_t rank, int i) {
        { topology.detour(size, rank, rank, i) } -> std::same_as<rank_t>;
        { topology.detect } -> std::convertible_to<detect>;
        { topology.chunk_bytes } -> std::convertible_to<std::size_t>;
    };

}}  // namespace rill::RILL_ABI
