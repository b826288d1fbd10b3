#pragma once

#include <rill/concept/tree_topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// The (width, depth)-regular tree: a master, and `depth` layers of workers below it. Each node has `width` children,
/// except in the last layer. Models `TreeTopology`.
///
/// Ranks are numbered breadth first: the master is rank 0, then come the layers one by one, with the children of one
/// parent next to each other. A group that uses the tree must have `size()` ranks; any other size breaks a contract.
///
/// Source: CodedReduce, section III-A, where the node (l, i) is rank `first_of(l) + i - 1`.
struct regular_tree {
    int width = 2;
    int depth = 1;

    static constexpr const char* name = "regular_tree";

    /// The master and all workers: 1 + width + width² + … + width^depth.
    constexpr int size() const {
        check();
        return first_of(depth + 1);
    }
    constexpr int workers() const { return size() - 1; }

    /// The lowest rank of a layer. Layer 0 is the master alone; `layer` is at most `depth + 1`, an empty layer.
    constexpr int first_of(int layer) const {
        long long first = 0;
        for (int l = 0; l < layer; ++l) {
            first = first * width + 1;
            RILL_EXPECTS(first <= most_ranks, "regular_tree: more than 2^30 ranks");
        }
        return static_cast<int>(first);
    }
    /// How many edges lie between a rank and the master.
    constexpr int layer(rank_t rank) const {
        int layers = 0;
        for (; rank > 0; rank = (rank - 1) / width) ++layers;
        return layers;
    }

    /// The parent of a rank; `no_rank` for the master.
    constexpr rank_t parent(int size, rank_t rank) const {
        check(size, rank);
        return rank == 0 ? no_rank : (rank - 1) / width;
    }
    /// How many children a rank has: `width`, or 0 in the last layer.
    constexpr int children(int size, rank_t rank) const {
        check(size, rank);
        return is_inner(size, rank) ? width : 0;
    }
    /// Child i, `0 … children-1`, in ascending order of ranks.
    constexpr rank_t child(int size, rank_t rank, int i) const {
        RILL_EXPECTS(0 <= i && i < children(size, rank), "regular_tree: no such child");
        return rank * width + 1 + i;
    }
    /// How many edges lie between a rank and the leaves below it.
    constexpr int height(int size, rank_t rank) const {
        check(size, rank);
        return depth - layer(rank);
    }

    /// Calls `visit(name, value)` for each option.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("width", width);
        visit("depth", depth);
    }

    friend constexpr bool operator==(regular_tree, regular_tree) = default;

  private:
    static constexpr int most_ranks = 1 << 30;

    constexpr bool is_inner(int size, rank_t rank) const { return rank < (size - 1) / width; }
    constexpr void check() const {
        rill::detail::require_option(width > 0, "topology::regular_tree: width", width, "at least 1");
        rill::detail::require_option(depth > 0, "topology::regular_tree: depth", depth, "at least 1");
    }
    constexpr void check([[maybe_unused]] int size, [[maybe_unused]] rank_t rank) const {
        RILL_EXPECTS(size == this->size(), "regular_tree: the group has not 1 + width + … + width^depth ranks");
        RILL_EXPECTS(0 <= rank && rank < size, "regular_tree: no such rank");
    }
};

static_assert(TreeTopology<regular_tree>);

}}}  // namespace rill::RILL_ABI::topology
