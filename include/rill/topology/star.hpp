#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/call.hpp>
#include <rill/topology/tree_schedule.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// All ranks send to one rank, the root, which folds and answers: a tree of depth 1. Models `Topology` and
/// `TreeTopology`.
///
/// Cost: every collective takes 2 rounds. The root (rank 0 in collectives without a root) sends `all_reduce` and
/// `broadcast` N(P-1), `reduce_scatter` N(P-1)/P, `all_gather` N(P-1)²/P; any other rank sends at most N.
/// Determinism: ascending order of ranks, for every root.
struct star {
    static constexpr const char* name = "star";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;

    constexpr tree_schedule all_reduce(int size, rank_t rank) const {
        return {operation::all_reduce, arity(size), size, rank};
    }
    constexpr tree_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, arity(size), size, rank};
    }
    constexpr tree_schedule all_gather(int size, rank_t rank) const {
        return {operation::all_gather, arity(size), size, rank};
    }
    constexpr tree_schedule reduce(int size, rank_t rank, rank_t root) const {
        return {operation::reduce, arity(size), size, rank, root};
    }
    constexpr tree_schedule broadcast(int size, rank_t rank, rank_t root) const {
        return {operation::broadcast, arity(size), size, rank, root};
    }

    constexpr rank_t parent(int size, rank_t rank) const { return reduce(size, rank, 0).parent(); }
    constexpr int children(int size, rank_t rank) const { return reduce(size, rank, 0).children(); }
    constexpr rank_t child(int size, rank_t rank, int i) const { return reduce(size, rank, 0).child(i); }
    constexpr int height(int size, rank_t rank) const { return reduce(size, rank, 0).height(); }

    friend constexpr bool operator==(star, star) = default;

  private:
    static constexpr int arity(int size) { return size > 1 ? size - 1 : 1; }
};

static_assert(Topology<star> && TreeTopology<star>);

}}}  // namespace rill::RILL_ABI::topology
