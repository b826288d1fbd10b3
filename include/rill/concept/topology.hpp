#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/types.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI {

/// Consecutive parts `[first, last)` of the `parts()` of a schedule.
struct part_range {
    int first = 0;
    int last = 0;

    constexpr int count() const { return last - first; }
    constexpr bool contains(int part) const { return first <= part && part < last; }
    friend constexpr bool operator==(part_range, part_range) = default;
};

/// One message of a round: to or from `peer`, carrying `parts`.
struct transfer {
    rank_t peer = no_rank;
    part_range parts{};

    friend constexpr bool operator==(transfer, transfer) = default;
};

/// What a rank does with what it receives in a round: fold it into the part it has, or replace that part by it.
enum class action : unsigned char { fold, copy };

/// One rank's view of a collective, computed on demand with O(1) state.
///
/// `[0, N)` is divided into `parts()` nearly equal parts. In round `k` a rank sends `send(k, 0 … sends(k)-1)`, with the
/// values that the parts have before the round, and receives `receive(k, 0 … receives(k)-1)`, in ascending order of
/// peers. Rounds are numbered alike on all ranks: what is sent in round k is received in round k. The parts that are
/// received in one round are either all the same range (a k-way fold) or disjoint. After a copy round of a part there
/// is no fold round of that part.
template <class S>
concept Schedule = Regular<S> && requires(const S& schedule, int round, int i) {
    { schedule.parts() } -> std::same_as<int>;
    { schedule.rounds() } -> std::same_as<int>;
    { schedule.kind(round) } -> std::same_as<action>;
    { schedule.sends(round) } -> std::same_as<int>;
    { schedule.send(round, i) } -> std::same_as<transfer>;
    { schedule.receives(round) } -> std::same_as<int>;
    { schedule.receive(round, i) } -> std::same_as<transfer>;
};

/// A schedule of which no transfer carries more than one part: `static constexpr bool carries_one_part = true`. Its
/// parts can be cut into chunks (`topology::chunked_schedule`).
template <class S>
concept PartwiseSchedule = Schedule<S> && requires { requires S::carries_one_part; };

/// Whether no transfer of this schedule carries more than one part. A schedule that is one of several at run time
/// answers itself (`holds_one_part_transfers()`); for others their type does (`PartwiseSchedule`).
template <Schedule S>
constexpr bool carries_one_part(const S& schedule) {
    if constexpr (requires { schedule.holds_one_part_transfers(); })
        return schedule.holds_one_part_transfers();
    else
        return PartwiseSchedule<S>;
}

/// A schedule whose rounds may overlap: a part that is sent in round k was last received in round `k - lookahead()` or
/// before. So a rank may post its sends that many rounds ahead of its receives; other schedules have a lookahead of 1.
/// `lookahead()` is at least 1. Where it is more, every transfer carries parts.
template <class S>
concept LookaheadSchedule = Schedule<S> && requires(const S& schedule) {
    { schedule.lookahead() } -> std::same_as<int>;
};

/// Who talks to whom: a value that gives each rank of a group of `size` ranks its schedule of each collective.
///
/// - `all_reduce`: every rank ends with every contribution exactly once in every part.
/// - `reduce_scatter`: `parts() == size`; rank r ends with every contribution in part r.
/// - `all_gather`: `parts() == size`; rank r starts with part r alone, every rank ends with all parts.
///
/// `topology/proof.hpp` checks each of these collectives, at compile time for small groups.
///
/// - `preserves_rank_order`: folds combine contributions in ascending order of ranks, as non-commutative folds need.
/// - `has_copy_phase`: `all_reduce` ends with a copy phase: rounds in which finished parts are sent on unchanged. Each
///   part is finished by one owner, so that it can be coded once.
///
/// Refinements: `RootedTopology`, `OwnerTopology`.
template <class T>
concept Topology = Regular<T> && requires(const T& topology, int size, rank_t rank) {
    { topology.all_reduce(size, rank) } -> Schedule;
    { topology.reduce_scatter(size, rank) } -> Schedule;
    { topology.all_gather(size, rank) } -> Schedule;
    { T::preserves_rank_order } -> std::convertible_to<bool>;
    { T::has_copy_phase } -> std::convertible_to<bool>;
    { T::name } -> std::convertible_to<const char*>;
};

/// Whether this topology preserves the order of ranks. A topology that is one of several at run time answers itself
/// (`holds_rank_order()`); for others their type does (`T::preserves_rank_order`).
template <Topology T>
constexpr bool preserves_rank_order(const T& topology) {
    if constexpr (requires { topology.holds_rank_order(); })
        return topology.holds_rank_order();
    else
        return T::preserves_rank_order;
}
/// Whether this topology has a copy phase: like `preserves_rank_order`, by `holds_copy_phase()` or `T::has_copy_phase`.
template <Topology T>
constexpr bool has_copy_phase(const T& topology) {
    if constexpr (requires { topology.holds_copy_phase(); })
        return topology.holds_copy_phase();
    else
        return T::has_copy_phase;
}

/// A topology with schedules of its own for operations that have a root. Groups of other topologies reduce and
/// broadcast along `topology::tree`, also if the topology has one of the two.
///
/// - `reduce(size, rank, root)`: leaves every contribution at `root`, then tells all ranks that it did (copy rounds
///   whose messages carry no parts).
/// - `broadcast(size, rank, root)`: tells the root that all ranks have entered (copy rounds whose messages carry no
///   parts), then copies from the root.
///
/// Hence no rank returns before all have entered the same call.
template <class T>
concept RootedTopology = Topology<T> && requires(const T& topology, int size, rank_t rank) {
    { topology.reduce(size, rank, rank) } -> Schedule;
    { topology.broadcast(size, rank, rank) } -> Schedule;
};

/// A topology whose `all_reduce` folds each part at its owner: `static constexpr bool folds_at_owners = true`. There
/// are P parts; rank r receives part r from all other ranks in one round and folds it in ascending order of ranks; then
/// all ranks copy it from there. Where ranks reach each other's memory, that is one pass over it.
template <class T>
concept OwnerTopology = Topology<T> && requires { requires T::folds_at_owners; };

/// Whether this topology folds each part at its owner: like `preserves_rank_order`, by `holds_owner_folds()` or
/// `OwnerTopology`.
template <Topology T>
constexpr bool folds_at_owners(const T& topology) {
    if constexpr (requires { topology.holds_owner_folds(); })
        return topology.holds_owner_folds();
    else
        return OwnerTopology<T>;
}
namespace detail {
/// Whether a topology of this type may fold each part at its owner.
template <class T>
constexpr bool may_fold_at_owners = OwnerTopology<T> || requires(const T& topology) { topology.holds_owner_folds(); };
}  // namespace detail

}}  // namespace rill::RILL_ABI
