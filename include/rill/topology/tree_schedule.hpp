#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/call.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/topology/subtree.hpp>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// One rank's schedule up and down a preorder tree. Rounds are numbered by level, so that the messages of all children
/// of a node arrive in one round. Models `Schedule`. Construction takes O(depth), every query of the schedule O(1).
class tree_schedule {
  public:
    constexpr tree_schedule() = default;
    constexpr tree_schedule(operation what, int arity, int size, rank_t rank, rank_t root = 0)
        : what_(what), arity_(arity), size_(size) {
        rill::detail::require_option(arity >= 1, "topology::tree: arity", arity, "at least 1", rank);
        RILL_EXPECTS(0 <= rank && rank < size, "topology::tree: the rank is outside the group");
        RILL_EXPECTS(0 <= root && root < size, "topology::tree: the root is outside the group");
        node_ = {root, 0, size};
        depth_ = node_.depth(arity);
        for (; node_.root != rank; ++level_) {
            parent_ = node_.root;
            node_ = node_.child_with(arity, rank);
        }
    }

    constexpr int parts() const { return by_parts() ? size_ : 1; }
    constexpr int rounds() const { return 2 * depth_; }
    constexpr action kind(int round) const {
        const bool folds = what_ != operation::all_gather && what_ != operation::broadcast;
        return folds && goes_up(round) ? action::fold : action::copy;
    }

    constexpr int sends(int round) const { return goes_up(round) ? to_parent(round) : to_children(round); }
    constexpr transfer send(int round, int i) const {
        return goes_up(round) ? transfer{parent_, up(node_)} : with_child(round, i);
    }
    constexpr int receives(int round) const { return goes_up(round) ? to_children(round) : to_parent(round); }
    constexpr transfer receive(int round, int i) const {
        return goes_up(round) ? with_child(round, i) : transfer{parent_, down(node_, i)};
    }

    constexpr rank_t parent() const { return parent_; }  ///< `no_rank` for the root
    constexpr int children() const { return node_.children(arity_); }
    constexpr rank_t child(int i) const { return node_.child(arity_, i).root; }
    constexpr int level() const { return level_; }
    constexpr int depth() const { return depth_; }
    constexpr int height() const { return node_.depth(arity_); }  ///< edges down to the deepest rank below

    friend constexpr bool operator==(const tree_schedule&, const tree_schedule&) = default;

  private:
    constexpr bool by_parts() const { return what_ == operation::reduce_scatter || what_ == operation::all_gather; }
    constexpr bool goes_up(int round) const { return round < depth_; }
    /// The level of the children that send or receive in a round.
    constexpr int lower_level(int round) const {
        const int step = round < depth_ ? round : round - depth_;
        return goes_up(round) ? depth_ - step : step + 1;
    }

    /// How many transfers this rank has in a round with its parent (`to_parent`) and with its children (`to_children`).
    constexpr int to_parent(int round) const {
        if (level_ != lower_level(round)) return 0;
        return per_edge(round) - (per_edge(round) == 2 && node_.last == size_ ? 1 : 0);
    }
    constexpr int to_children(int round) const {
        if (level_ + 1 != lower_level(round) || children() == 0) return 0;
        const bool last_has_one = per_edge(round) == 2 && node_.last == size_;
        return per_edge(round) * children() - (last_has_one ? 1 : 0);
    }
    constexpr transfer with_child(int round, int i) const {
        const subtree below = node_.child(arity_, i / per_edge(round));
        return {below.root, goes_up(round) ? up(below) : down(below, i % per_edge(round))};
    }
    /// How many transfers an edge has in a round. On the way down in an all-gather there are two: what a child lacks
    /// lies on both sides of its subtree. A subtree that includes the last rank has nothing after it, and gets only
    /// one.
    constexpr int per_edge(int round) const { return what_ == operation::all_gather && !goes_up(round) ? 2 : 1; }

    /// The parts that travel between the root of `below` and its parent, in rounds up and down the tree.
    constexpr part_range up(subtree below) const {
        if (what_ == operation::broadcast) return {};
        if (what_ == operation::all_gather) return {below.first, below.last};
        return {0, parts()};
    }
    constexpr part_range down(subtree below, int i) const {
        if (what_ == operation::reduce) return {};
        if (what_ == operation::reduce_scatter) return {below.first, below.last};
        if (what_ == operation::all_gather) return i == 0 ? part_range{0, below.first} : part_range{below.last, size_};
        return {0, 1};
    }

    operation what_ = operation::all_reduce;
    int arity_ = 1;
    int size_ = 1;
    int depth_ = 0;
    int level_ = 0;
    rank_t parent_ = no_rank;
    subtree node_{};
};

}}}  // namespace rill::RILL_ABI::topology
