#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/call.hpp>
#include <rill/topology/tree_schedule.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// A preorder tree whose nodes have at most `arity` children (see `subtree`); arity 1 is a chain. Contributions are
/// folded on the way up, results are copied on the way down. A root that is neither the first nor the last rank has at
/// least one child on each side. Models `Topology` and `TreeTopology`.
///
/// Cost, with depth D ≈ log_arity P: every collective takes 2D rounds. A rank sends at most: `all_reduce` N(1 + arity),
/// `reduce` N, `broadcast` N·arity, both with frames without content in the other direction; `reduce_scatter` less than
/// 2N, `all_gather` N(arity + 1/P).
/// Determinism: ascending order of ranks, for every root.
struct tree {
    int arity = 2;

    static constexpr const char* name = "tree";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;

    constexpr tree_schedule all_reduce(int size, rank_t rank) const {
        return {operation::all_reduce, arity, size, rank};
    }
    constexpr tree_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, arity, size, rank};
    }
    constexpr tree_schedule all_gather(int size, rank_t rank) const {
        return {operation::all_gather, arity, size, rank};
    }
    constexpr tree_schedule reduce(int size, rank_t rank, rank_t root) const {
        return {operation::reduce, arity, size, rank, root};
    }
    constexpr tree_schedule broadcast(int size, rank_t rank, rank_t root) const {
        return {operation::broadcast, arity, size, rank, root};
    }

    constexpr rank_t parent(int size, rank_t rank) const { return reduce(size, rank, 0).parent(); }
    constexpr int children(int size, rank_t rank) const { return reduce(size, rank, 0).children(); }
    constexpr rank_t child(int size, rank_t rank, int i) const { return reduce(size, rank, 0).child(i); }
    constexpr int height(int size, rank_t rank) const { return reduce(size, rank, 0).height(); }

    /// Calls `visit(name, value)` for each option; printing and hashing use it.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("arity", arity);
    }

    friend constexpr bool operator==(tree, tree) = default;
};

static_assert(Topology<tree> && TreeTopology<tree>);

}}}  // namespace rill::RILL_ABI::topology
