#pragma once

#include <rill/collective/front.hpp>
#include <rill/collective/synchronise.hpp>

namespace rill::inline RILL_ABI {

/// Returns when all ranks have called it. Costs the rounds of the topology's `all_reduce`, with frames of headers only.
template <class Group>
receipt barrier(Group& group) {
    const auto plan = group.shape().all_reduce(group.size(), group.rank());
    auto& state = group.template workspace<detail::empty_state<typename Group::transport_type>>();
    return group.run({.kind = operation::barrier}, [&](auto& call) { return detail::synchronise(call, plan, state); });
}

}  // namespace rill::inline RILL_ABI
