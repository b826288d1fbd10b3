#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/call.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/topology/along_schedule.hpp>

#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Runs every collective along a tree, which defines only parents and children: contributions are folded on the way up,
/// results are copied on the way down. To reduce to, or broadcast from, a root other than rank 0, that root and rank 0
/// change places. Models `Topology` and `TreeTopology`.
///
/// A group wraps a tree without collectives of its own in `along`: `group{net, regular_tree{3, 2}}`.
///
/// Cost, with height H: every collective takes 2H rounds. A rank with c children sends at most: `all_reduce` N(1 + c),
/// `reduce` N, `broadcast` N·c, `reduce_scatter` N(1 + c), `all_gather` N(1 + c). The last two send parts in one
/// message for each run of consecutive ranks below a child (1 run in `star`, at most one more than its height in
/// `regular_tree`). To find these runs, a rank asks for the parents of all ranks: O(P·H) time, no memory.
/// Determinism: a rank folds its own contribution and its children's sums in ascending order of ranks.
template <TreeTopology Tree>
struct along {
    Tree tree{};

    constexpr along() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): a group takes a tree where it takes a topology
    constexpr along(const Tree& of) : tree(of) {}

    static constexpr const char* name = Tree::name;
    static constexpr bool preserves_rank_order = false;
    static constexpr bool has_copy_phase = true;

    constexpr along_schedule<Tree> all_reduce(int size, rank_t rank) const {
        return {operation::all_reduce, tree, size, rank};
    }
    constexpr along_schedule<Tree> reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, tree, size, rank};
    }
    constexpr along_schedule<Tree> all_gather(int size, rank_t rank) const {
        return {operation::all_gather, tree, size, rank};
    }
    constexpr along_schedule<Tree> reduce(int size, rank_t rank, rank_t root) const {
        return {operation::reduce, tree, size, rank, root};
    }
    constexpr along_schedule<Tree> broadcast(int size, rank_t rank, rank_t root) const {
        return {operation::broadcast, tree, size, rank, root};
    }

    constexpr rank_t parent(int size, rank_t rank) const { return tree.parent(size, rank); }
    constexpr int children(int size, rank_t rank) const { return tree.children(size, rank); }
    constexpr rank_t child(int size, rank_t rank, int i) const { return tree.child(size, rank, i); }
    constexpr int height(int size, rank_t rank) const { return tree.height(size, rank); }

    /// Calls `visit(name, value)` for each option of the tree.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        if constexpr (HasOptions<Tree>) tree.visit_options(visit);
    }

    friend constexpr bool operator==(const along&, const along&) = default;
};

/// The topology that a group makes of a shape: the shape itself if it has collectives, otherwise collectives along the
/// tree that it is.
template <class Shape>
struct with_collectives {
    using type = Shape;
};
template <TreeTopology Shape>
    requires(!Topology<Shape>)
struct with_collectives<Shape> {
    using type = along<Shape>;
};

}}}  // namespace rill::RILL_ABI::topology
