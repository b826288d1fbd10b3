#pragma once

#include <rill/concept/detouring_topology.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/tree.hpp>
#include <rill/topology/tree_schedule.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// The tree of `tree{arity}` with detours: if a link is silent, another rank forwards its messages. Parents, children,
/// schedules and the bits of results are those of `tree{arity}`. A detour changes the way of a message, not its sender
/// and receiver. Models `Topology`, `TreeTopology` and `DetouringTopology`.
///
/// A rank has tree links to its parent and its children. It also has backup links to its brothers (the other children
/// of its parent) and its uncles (the brothers of its parent). If the link between a parent and a child is silent,
/// their messages go by way of a brother of the child, then of an uncle, then of any other rank. The ways by brothers
/// and uncles consist of tree and backup links alone. With P ranks, all ranks still reach each other after the loss of
/// any P - 2 links.
///
/// Options: `arity` is the most children of a rank; `detect` says when a link is silent; large dense vectors travel in
/// chunks of `chunk_bytes`, so that little is sent again.
/// Cost without silent links: that of `tree`, an acknowledgement for each message, and two passes over the tree with
/// headers at the end of an operation.
/// Determinism: ascending order of ranks, for every root, whatever way messages take.
/// Source: Padrão, "Fault Tolerant Decentralized Deep Neural Networks", chapter 6. There trees are binary, and the
/// backup links are the only detours.
struct backup_tree {
    int arity = 2;
    rill::detect detect{};
    std::size_t chunk_bytes = std::size_t{1} << 15;

    static constexpr const char* name = "backup_tree";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;

    /// Refuses options out of range; each group calls it first.
    constexpr tree_schedule all_reduce(int size, rank_t rank) const {
        rill::detail::require_option(detect.first.ns > 0, "topology::backup_tree: detect, first (ns)", detect.first.ns,
                                     "above 0", rank);
        rill::detail::require_option(detect.least.ns > 0, "topology::backup_tree: detect, least (ns)", detect.least.ns,
                                     "above 0", rank);
        rill::detail::require_option(chunk_bytes > 0, "topology::backup_tree: chunk_bytes", chunk_bytes, "above 0",
                                     rank);
        return plain().all_reduce(size, rank);
    }
    constexpr tree_schedule reduce_scatter(int size, rank_t rank) const { return plain().reduce_scatter(size, rank); }
    constexpr tree_schedule all_gather(int size, rank_t rank) const { return plain().all_gather(size, rank); }
    constexpr tree_schedule reduce(int size, rank_t rank, rank_t root) const {
        return plain().reduce(size, rank, root);
    }
    constexpr tree_schedule broadcast(int size, rank_t rank, rank_t root) const {
        return plain().broadcast(size, rank, root);
    }

    constexpr rank_t parent(int size, rank_t rank) const { return plain().parent(size, rank); }
    constexpr int children(int size, rank_t rank) const { return plain().children(size, rank); }
    constexpr rank_t child(int size, rank_t rank, int i) const { return plain().child(size, rank, i); }
    constexpr int height(int size, rank_t rank) const { return plain().height(size, rank); }

    /// The other children of the parent, in ascending order; the root has none. Cost of this and the next functions:
    /// O(depth).
    constexpr int brothers(int size, rank_t rank) const {
        const rank_t above = parent(size, rank);
        return above == no_rank ? 0 : children(size, above) - 1;
    }
    constexpr rank_t brother(int size, rank_t rank, int i) const {
        RILL_EXPECTS(0 <= i && i < brothers(size, rank), "backup_tree: no such brother");
        const rank_t above = parent(size, rank);
        return child(size, above, child(size, above, i) < rank ? i : i + 1);
    }
    /// The brothers of the parent, in ascending order; the root and its children have none.
    constexpr int uncles(int size, rank_t rank) const {
        const rank_t above = parent(size, rank);
        return above == no_rank ? 0 : brothers(size, above);
    }
    constexpr rank_t uncle(int size, rank_t rank, int i) const {
        RILL_EXPECTS(0 <= i && i < uncles(size, rank), "backup_tree: no such uncle");
        return brother(size, parent(size, rank), i);
    }
    /// Whether a link between two ranks is one of the tree, or a backup link.
    constexpr bool is_tree_link(int size, rank_t one, rank_t other) const {
        return parent(size, one) == other || parent(size, other) == one;
    }
    constexpr bool is_backup_link(int size, rank_t one, rank_t other) const {
        return one != other && (backs_up(size, one, other) || backs_up(size, other, one));
    }

    /// See `DetouringTopology`. Between parent and child: brothers of the child, its uncles, then all other ranks.
    /// Between two others: all other ranks. Cost: O(depth) for brothers and uncles, O(P·depth) for other ranks.
    constexpr rank_t detour(int size, rank_t one, rank_t other, int i) const {
        RILL_EXPECTS(0 <= i && i < size - 2, "backup_tree: no such detour");
        const bool is_link = is_tree_link(size, one, other);
        const rank_t below = parent(size, one) == other ? one : other;
        const int near = is_link ? brothers(size, below) : 0, far = is_link ? uncles(size, below) : 0;
        if (i < near) return brother(size, below, i);
        if (i < near + far) return uncle(size, below, i - near);
        int left = i - near - far;
        for (rank_t rank = 0; rank < size; ++rank) {
            const bool is_end = rank == one || rank == other;
            if (is_end || (is_link && backs_up(size, below, rank))) continue;
            if (left-- == 0) return rank;
        }
        return no_rank;
    }

    /// Calls `visit(name, value)` for each option; printing and hashing use it.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        plain().visit_options(visit);
        detect.visit_options(visit);
        visit("chunk_bytes", chunk_bytes);
    }

    friend constexpr bool operator==(const backup_tree&, const backup_tree&) = default;

  private:
    constexpr tree plain() const { return {arity}; }
    /// Whether `helper` is a brother or an uncle of `child`.
    constexpr bool backs_up(int size, rank_t child, rank_t helper) const {
        const rank_t above = parent(size, child), above_helper = parent(size, helper);
        if (above == no_rank || above_helper == no_rank || helper == child || helper == above) return false;
        return above_helper == above || above_helper == parent(size, above);
    }
};

static_assert(RootedTopology<backup_tree> && TreeTopology<backup_tree> && DetouringTopology<backup_tree>);

}}}  // namespace rill::RILL_ABI::topology
