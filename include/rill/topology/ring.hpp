#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/call.hpp>
#include <rill/core/contract.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// One rank's schedule around a ring: in each round it sends one part to the next rank and receives one from the
/// previous rank. Models `Schedule`.
class ring_schedule {
  public:
    static constexpr bool carries_one_part = true;

    constexpr ring_schedule() = default;
    constexpr ring_schedule(operation what, int size, rank_t rank) : what_(what), size_(size), rank_(rank) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology::ring: the rank is outside the group");
    }

    constexpr int parts() const { return size_; }
    constexpr int rounds() const { return (size_ - 1) * (what_ == operation::all_reduce ? 2 : 1); }
    constexpr action kind(int round) const { return round < fold_rounds() ? action::fold : action::copy; }
    constexpr int sends(int) const { return 1; }
    constexpr transfer send(int round, int) const { return {at(rank_ + 1), one(sent_by(rank_, round))}; }
    constexpr int receives(int) const { return 1; }
    constexpr transfer receive(int round, int) const { return {at(rank_ - 1), one(sent_by(rank_ - 1, round))}; }

    friend constexpr bool operator==(const ring_schedule&, const ring_schedule&) = default;

  private:
    constexpr int fold_rounds() const { return what_ == operation::all_gather ? 0 : size_ - 1; }
    constexpr int at(int i) const { return (i + 2 * size_) % size_; }
    static constexpr part_range one(int part) { return {part, part + 1}; }

    /// The part that `rank` sends in a round. Part p starts at rank p+1, so that rank p folds it last and sends the
    /// first copy.
    constexpr int sent_by(rank_t rank, int round) const {
        return kind(round) == action::fold ? at(rank - 1 - round) : at(rank - (round - fold_rounds()));
    }

    operation what_ = operation::all_reduce;
    int size_ = 1;
    rank_t rank_ = 0;
};

/// Part p of P travels once around the ring and is folded on the way; then it travels around once more as a copy.
/// Models `Topology`.
///
/// Cost: `all_reduce` takes 2(P-1) rounds and sends 2N(P-1)/P per rank, `reduce_scatter` and `all_gather` half of each.
/// These are the least bytes possible, in the most rounds.
/// Determinism: part p is folded in the order p+1, …, P-1, 0, …, p.
/// Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009.
struct ring {
    static constexpr const char* name = "ring";
    static constexpr bool preserves_rank_order = false;
    static constexpr bool has_copy_phase = true;

    constexpr ring_schedule all_reduce(int size, rank_t rank) const { return {operation::all_reduce, size, rank}; }
    constexpr ring_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, size, rank};
    }
    constexpr ring_schedule all_gather(int size, rank_t rank) const { return {operation::all_gather, size, rank}; }

    friend constexpr bool operator==(ring, ring) = default;
};

static_assert(Topology<ring>);

}}}  // namespace rill::RILL_ABI::topology
