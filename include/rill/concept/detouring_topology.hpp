#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// When a rank calls a link silent: a message over it has not been acknowledged for that long.
///
/// - `adaptive`, the default: the smoothed round trip of the link, four of its mean deviations, and the time that the
///   bytes on the way take at the rate that was measured (Jacobson and Karels, as in TCP). Only messages that were sent
///   once, and over the link itself, are measured (Karn). `first` counts until something has been measured, `least`
///   bounds it from below.
/// - `fixed`: always the same time. Each rank judges for itself, and each message anew.
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
/// those of any topology; the collectives deliver each of these messages, by whatever way, exactly once.
///
/// - `detour(size, one, other, i)`, for i from 0 to size - 3: the ranks that may carry a message between two ranks,
///   each once, the best first. The same in both directions.
/// - `detect`: when a link is silent.
template <class T>
concept DetouringTopology = Topology<T> && requires(const T& topology, int size, rank_t rank, int i) {
    { topology.detour(size, rank, rank, i) } -> std::same_as<rank_t>;
    { topology.detect } -> std::convertible_to<detect>;
};

}}  // namespace rill::RILL_ABI
