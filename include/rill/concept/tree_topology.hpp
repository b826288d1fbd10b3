#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI {

/// A tree over all ranks of a group, in which each rank gathers from its children. Its root is rank 0.
///
/// - `parent(size, rank)`: the parent of `rank`; `no_rank` for the root.
/// - `child(size, rank, i)`, for i below `children(size, rank)`: the children of `rank`, in ascending order.
/// - `height(size, rank)`: the number of edges from `rank` down to the deepest rank below it; 0 for a leaf.
///
/// `rounds` and `coded_reduce` hand a state down a tree and gather contributions up it. A group accepts a tree as its
/// topology; every collective then runs along the tree (`topology::along`).
///
/// Laws: `testing::for_each_tree_law` checks them.
template <class T>
concept TreeTopology = Regular<T> && requires(const T& tree, int size, rank_t rank, int i) {
    { tree.parent(size, rank) } -> std::same_as<rank_t>;
    { tree.children(size, rank) } -> std::same_as<int>;
    { tree.child(size, rank, i) } -> std::same_as<rank_t>;
    { tree.height(size, rank) } -> std::same_as<int>;
    { T::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
