#pragma once

#include <rill/concept/topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/tree.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The topology of `reduce` and `broadcast`: the group's own if it is a `RootedTopology`, else a binary tree.
template <class Shape>
constexpr auto rooted(const Shape& shape) {
    if constexpr (RootedTopology<Shape>)
        return shape;
    else
        return topology::tree{};
}

template <class Group>
void require_root(const Group& group, rank_t root) {
    RILL_EXPECTS(0 <= root && root < group.size(), "the root must be a rank of the group");
}

}}}  // namespace rill::RILL_ABI::detail
