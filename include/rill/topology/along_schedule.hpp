#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/call.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// One rank's schedule up and down any tree. Rounds are numbered by level, so that the messages of all children of a
/// node arrive in one round. Models `Schedule`. Construction takes O(height); a query takes O(children), and
/// O(P·height) where it must find the parts of the ranks below a node.
template <TreeTopology Tree>
class along_schedule {
  public:
    constexpr along_schedule() = default;
    constexpr along_schedule(operation what, const Tree& tree, int size, rank_t rank, rank_t root = 0)
        : what_(what), tree_(tree), size_(size), root_(root), depth_(tree.height(size, 0)), place_(swapped(rank)) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology::along: the rank is outside the group");
        RILL_EXPECTS(0 <= root && root < size, "topology::along: the root is outside the group");
        for (rank_t above = tree_.parent(size, place_); above != no_rank; above = tree_.parent(size, above)) ++level_;
    }

    constexpr int parts() const { return by_parts() ? size_ : 1; }
    constexpr int rounds() const { return 2 * depth_; }
    constexpr action kind(int round) const {
        const bool folds = what_ != operation::all_gather && what_ != operation::broadcast;
        return folds && goes_up(round) ? action::fold : action::copy;
    }

    constexpr int sends(int round) const { return goes_up(round) ? to_parent(round) : to_children(round); }
    constexpr transfer send(int round, int i) const {
        return goes_up(round) ? with_parent(round, i) : with_child(round, i);
    }
    constexpr int receives(int round) const { return goes_up(round) ? to_children(round) : to_parent(round); }
    constexpr transfer receive(int round, int i) const {
        return goes_up(round) ? with_child(round, i) : with_parent(round, i);
    }

    friend constexpr bool operator==(const along_schedule&, const along_schedule&) = default;

  private:
    /// The ranks at and below a place, or, if not `below`, all others.
    struct ranks_of {
        rank_t place;
        bool below;
    };

    constexpr bool by_parts() const { return what_ == operation::reduce_scatter || what_ == operation::all_gather; }
    constexpr bool goes_up(int round) const { return round < depth_; }
    /// The level of the children that send or receive in a round.
    constexpr int lower_level(int round) const { return goes_up(round) ? depth_ - round : round - depth_ + 1; }

    /// The place of a rank in the tree, and the rank at a place: the root and rank 0 have changed places.
    constexpr rank_t swapped(rank_t rank) const {
        if (rank == root_) return 0;
        return rank == 0 ? root_ : rank;
    }

    /// The place of child `i` of this rank, in ascending order of the ranks.
    constexpr rank_t child_place(int i) const {
        if (root_ == 0 || tree_.parent(size_, root_) != place_) return tree_.child(size_, place_, i);
        if (i == 0) return root_;  // the place of rank 0
        const rank_t earlier = tree_.child(size_, place_, i - 1);
        return earlier < root_ ? earlier : tree_.child(size_, place_, i);
    }

    constexpr int to_parent(int round) const { return level_ == lower_level(round) ? messages(round, place_) : 0; }
    constexpr transfer with_parent(int round, int i) const {
        return {swapped(tree_.parent(size_, place_)), content(round, place_, i)};
    }
    constexpr int to_children(int round) const {
        if (level_ + 1 != lower_level(round)) return 0;
        int all = 0;
        for (int c = 0; c < tree_.children(size_, place_); ++c) all += messages(round, child_place(c));
        return all;
    }
    constexpr transfer with_child(int round, int i) const {
        int c = 0;
        for (int here = messages(round, child_place(0)); i >= here; here = messages(round, child_place(++c))) i -= here;
        return {swapped(child_place(c)), content(round, child_place(c), i)};
    }

    /// How many messages travel between the place `lower` and its parent in a round.
    constexpr int messages(int round, rank_t lower) const {
        return travels_whole(round) ? 1 : count_runs(carried(round, lower));
    }
    constexpr part_range content(int round, rank_t lower, int i) const {
        if (what_ == operation::broadcast && goes_up(round)) return {};
        if (what_ == operation::reduce && !goes_up(round)) return {};
        return travels_whole(round) ? part_range{0, parts()} : run(carried(round, lower), i);
    }
    constexpr bool travels_whole(int round) const {
        return !by_parts() || (what_ == operation::reduce_scatter && goes_up(round));
    }
    constexpr ranks_of carried(int round, rank_t lower) const {
        return {lower, what_ == operation::reduce_scatter || goes_up(round)};
    }

    constexpr bool contains(ranks_of set, rank_t rank) const {
        while (rank != no_rank && rank != set.place) rank = tree_.parent(size_, rank);
        return (rank == set.place) == set.below;
    }
    /// The number of maximal runs of consecutive ranks in a set.
    constexpr int count_runs(ranks_of set) const {
        int runs = 0;
        bool inside = false;
        for (rank_t r = 0; r < size_; ++r) {
            const bool in = contains(set, r);
            if (in && !inside) ++runs;
            inside = in;
        }
        return runs;
    }
    constexpr part_range run(ranks_of set, int i) const {
        rank_t first = 0, last = 0;
        for (; i >= 0; --i) {
            for (first = last; !contains(set, first);) ++first;
            for (last = first; last < size_ && contains(set, last);) ++last;
        }
        return {first, last};
    }

    operation what_ = operation::all_reduce;
    Tree tree_{};
    int size_ = 1;
    rank_t root_ = 0;
    int depth_ = 0;
    int level_ = 0;
    rank_t place_ = 0;
};

}}}  // namespace rill::RILL_ABI::topology
