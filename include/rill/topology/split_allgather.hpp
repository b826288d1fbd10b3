#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/call.hpp>
#include <rill/core/contract.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// One rank's schedule of `split_allgather`. In the fold round it sends part j to rank j, for all j; in the copy round
/// it sends its own part to all ranks. Models `Schedule`.
class split_schedule {
  public:
    static constexpr bool carries_one_part = true;

    constexpr split_schedule() = default;
    constexpr split_schedule(operation what, int size, rank_t rank) : what_(what), size_(size), rank_(rank) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology::split_allgather: the rank is outside the group");
    }

    constexpr int parts() const { return size_; }
    constexpr int rounds() const {
        if (size_ == 1) return 0;
        return what_ == operation::all_reduce ? 2 : 1;
    }
    constexpr action kind(int round) const {
        return round == 0 && what_ != operation::all_gather ? action::fold : action::copy;
    }
    constexpr int sends(int) const { return size_ - 1; }
    constexpr transfer send(int round, int i) const {
        // Each rank sends to the next rank first, so that no receiver is the first of all senders.
        const rank_t peer = (rank_ + 1 + i) % size_;
        return {peer, kind(round) == action::fold ? one(peer) : one(rank_)};
    }
    constexpr int receives(int) const { return size_ - 1; }
    constexpr transfer receive(int round, int i) const {
        const rank_t peer = i < rank_ ? i : i + 1;
        return {peer, kind(round) == action::fold ? one(rank_) : one(peer)};
    }

    friend constexpr bool operator==(const split_schedule&, const split_schedule&) = default;

  private:
    static constexpr part_range one(int part) { return {part, part + 1}; }

    operation what_ = operation::all_reduce;
    int size_ = 1;
    rank_t rank_ = 0;
};

/// Every rank owns one part: it receives that part from all others, folds all of them at once, and sends the result to
/// all. Models `Topology`.
///
/// Cost: `all_reduce` takes 2 rounds of P-1 messages and sends 2N(P-1)/P per rank; `reduce_scatter` and `all_gather`
/// take one round and half the bytes each. A sparse stream is merged once, k-way, instead of log P times.
/// Determinism: ascending order of ranks.
/// Source: Renggli et al., SparCML, SC 2019 (SSAR_Split_allgather).
struct split_allgather {
    static constexpr const char* name = "split_allgather";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;
    static constexpr bool folds_at_owners = true;

    constexpr split_schedule all_reduce(int size, rank_t rank) const { return {operation::all_reduce, size, rank}; }
    constexpr split_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, size, rank};
    }
    constexpr split_schedule all_gather(int size, rank_t rank) const { return {operation::all_gather, size, rank}; }

    friend constexpr bool operator==(split_allgather, split_allgather) = default;
};

static_assert(Topology<split_allgather>);

}}}  // namespace rill::RILL_ABI::topology
