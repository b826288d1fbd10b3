#pragma once

#include <rill/collective/detail/detours.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI {

/// Whether, after the group's latest operation, this rank holds its link to `peer` for silent. Messages to `peer` then
/// take a detour. For groups whose topology names detours.
template <class Group>
    requires DetouringTopology<typename Group::topology_type>
bool is_silent(Group& group, rank_t peer) {
    RILL_EXPECTS(0 <= peer && peer < group.size(), "is_silent: the peer is outside the group");
    using by = detail::detours<typename Group::transport_type, typename Group::topology_type>;
    return group.template workspace<by>().is_silent(peer);
}

}}  // namespace rill::RILL_ABI
