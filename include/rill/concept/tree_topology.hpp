#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>

namespace rill { inline namespace RILL_ABI {

/// A tree over all ranks of a group, down which a state is handed and up which contributions are gathered. Its root is
/// rank 0.
///
/// - `parent(size, rank)`: `no_rank` for the root.
/// - `child(size, rank, i)`, for i below `children(size, rank)`: in ascending order of ranks.
/// - `height(size, rank)`: edges down to the deepest rank below; 0 for a leaf.
template <class T>
concept TreeTopology = std::regular<T> && requires(const T& tree, int size, rank_t rank, int i) {
    { tree.parent(size, rank) } -> std::same_as<rank_t>;
    { tree.children(size, rank) } -> std::same_as<int>;
    { tree.child(size, rank, i) } -> std::same_as<rank_t>;
    { tree.height(size, rank) } -> std::same_as<int>;
    { T::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
