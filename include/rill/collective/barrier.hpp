#pragma once

#include <rill/collective/detail/call.hpp>
#include <rill/collective/detail/synchronise.hpp>
#include <rill/core/call.hpp>

namespace rill { inline namespace RILL_ABI {

namespace detail {
template <class Group>
auto barrier_call(Group&) {
    if constexpr (require_group<Group>()) {
        return [](typename Group::lane_type& lane) {
            const auto plan = lane.shape().all_reduce(lane.size(), lane.rank());
            return lane.run({.kind = operation::barrier}, [&](auto& call) { return synchronise(lane, call, plan); });
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Returns when all ranks have called it. Cost: the rounds of the topology's `all_reduce`, with frames of headers only.
template <class Group>
receipt barrier(Group& group) {
    return detail::barrier_call(group)(group);
}

/// Starts a barrier in the background: it is done when all ranks have started it.
template <class Group>
request start_barrier(Group& group) {
    return start(group, detail::barrier_call(group));
}

}}  // namespace rill::RILL_ABI
