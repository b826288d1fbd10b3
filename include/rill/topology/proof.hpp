/// Proves schedules correct, at compile time for small groups: follows every contribution through the rounds of all
/// ranks. Works on any model of `Topology`, and on any callable that gives each rank a `Schedule`.
#pragma once

#include <rill/concept/detail/require_topology.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/call.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/detail/proof_message.hpp>
#include <rill/topology/trace_contributions.hpp>

#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// The first defect of the schedules `schedule_of(0) … schedule_of(aim.size - 1)`, if they have one.
///
/// Defects are: a send without its receive in the same round with the same parts, or the reverse; a message from a rank
/// to itself; receives out of order; ranges outside `[0, parts())` or overlapping in a round; a message that one end
/// folds and the other copies; a contribution that is folded twice, or is missing at the end; a fold after a copy; a
/// copy that brings nothing new; a part that a rank receives but neither needs nor sends on; a rank that never learns
/// the outcome of a rooted operation; a broken promise (see `promises`, `PartwiseSchedule`, `LookaheadSchedule`). Cost:
/// memory O(P²·parts/8) bytes; time O(P/64) per part sent.
template <class ScheduleOf>
constexpr verdict verify(const obligation& aim, const ScheduleOf& schedule_of) {
    return follower<std::remove_cvref_t<decltype(schedule_of(rank_t{0}))>>(aim, schedule_of).run();
}

/// The promises that a topology makes: those of its type's flags, or of its own answers if it has them.
template <Topology T>
constexpr promises promises_of(const T& topology) {
    return {.rank_order = preserves_rank_order(topology),
            .copy_phase = has_copy_phase(topology),
            .owners = folds_at_owners(topology)};
}

/// Whether every rank ends with every contribution exactly once, in every part.
template <Topology T>
constexpr verdict verify_all_reduce(const T& topology, int size) {
    return verify({operation::all_reduce, size, 0, promises_of(topology)},
                  [&](rank_t rank) { return topology.all_reduce(size, rank); });
}

/// Whether rank r ends with every contribution exactly once in part r.
template <Topology T>
constexpr verdict verify_reduce_scatter(const T& topology, int size) {
    return verify({operation::reduce_scatter, size, 0, {.rank_order = preserves_rank_order(topology)}},
                  [&](rank_t rank) { return topology.reduce_scatter(size, rank); });
}

/// Whether part r, which rank r alone has at first, reaches every rank.
template <Topology T>
constexpr verdict verify_all_gather(const T& topology, int size) {
    return verify({operation::all_gather, size}, [&](rank_t rank) { return topology.all_gather(size, rank); });
}

/// Whether the root ends with every contribution exactly once, and every rank learns that it did.
template <Topology T>
constexpr verdict verify_reduce(const T& topology, int size, rank_t root) {
    return verify({operation::reduce, size, root, {.rank_order = preserves_rank_order(topology)}},
                  [&](rank_t rank) { return topology.reduce(size, rank, root); });
}

/// Whether every rank ends with what the root has, and the root learns that they do.
template <Topology T>
constexpr verdict verify_broadcast(const T& topology, int size, rank_t root) {
    return verify({operation::broadcast, size, root},
                  [&](rank_t rank) { return topology.broadcast(size, rank, root); });
}

namespace detail {
template <auto topology, int size>
consteval bool require_all_reduce_of() {
    if constexpr (rill::detail::require_topology<std::remove_cvref_t<decltype(topology)>>()) {
        constexpr verdict found = verify_all_reduce(topology, size);
        return require_no_defect<found.ok, describe({operation::all_reduce, size}, found)>();
    }
    return false;
}
template <auto topology, int size>
consteval bool require_reduce_scatter_of() {
    if constexpr (rill::detail::require_topology<std::remove_cvref_t<decltype(topology)>>()) {
        constexpr verdict found = verify_reduce_scatter(topology, size);
        return require_no_defect<found.ok, describe({operation::reduce_scatter, size}, found)>();
    }
    return false;
}
template <auto topology, int size>
consteval bool require_all_gather_of() {
    if constexpr (rill::detail::require_topology<std::remove_cvref_t<decltype(topology)>>()) {
        constexpr verdict found = verify_all_gather(topology, size);
        return require_no_defect<found.ok, describe({operation::all_gather, size}, found)>();
    }
    return false;
}
}  // namespace detail

/// Compiles only if `verify_all_reduce` finds no defect for groups of each of these sizes. Otherwise the compiler's
/// first error names the defect, its round and its rank, which a `static_assert` of `computes_all_reduce` cannot.
/// `topology` is a value whose members are public.
///
///     static_assert(rill::topology::require_all_reduce<my_topology{}, 1, 2, 3, 4, 5, 8, 17>());
///
template <auto topology, int... sizes>
consteval bool require_all_reduce() {
    return (detail::require_all_reduce_of<topology, sizes>() && ...);
}
/// Like `require_all_reduce`, for `verify_reduce_scatter`.
template <auto topology, int... sizes>
consteval bool require_reduce_scatter() {
    return (detail::require_reduce_scatter_of<topology, sizes>() && ...);
}
/// Like `require_all_reduce`, for `verify_all_gather`.
template <auto topology, int... sizes>
consteval bool require_all_gather() {
    return (detail::require_all_gather_of<topology, sizes>() && ...);
}

/// Whether `verify_all_reduce` finds no defect.
template <Topology T>
constexpr bool computes_all_reduce(const T& topology, int size) {
    return verify_all_reduce(topology, size).ok;
}
/// Whether `verify_reduce_scatter` finds no defect.
template <Topology T>
constexpr bool computes_reduce_scatter(const T& topology, int size) {
    return verify_reduce_scatter(topology, size).ok;
}
/// Whether `verify_all_gather` finds no defect.
template <Topology T>
constexpr bool computes_all_gather(const T& topology, int size) {
    return verify_all_gather(topology, size).ok;
}
/// Whether `verify_reduce` finds no defect.
template <Topology T>
constexpr bool computes_reduce(const T& topology, int size, rank_t root) {
    return verify_reduce(topology, size, root).ok;
}
/// Whether `verify_broadcast` finds no defect.
template <Topology T>
constexpr bool computes_broadcast(const T& topology, int size, rank_t root) {
    return verify_broadcast(topology, size, root).ok;
}

}}}  // namespace rill::RILL_ABI::topology
