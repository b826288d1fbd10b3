#pragma once

#include <rill/collective/detail/call.hpp>
#include <rill/collective/detail/synchronise.hpp>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// A barrier with options meets only one with the same; `names` must outlive the call.
template <class Group>
auto barrier_call(Group&, const call_options& options = {}, const option_names& names = collective_options) {
    if constexpr (require_group<Group>()) {
        return [options, &names](typename Group::lane_type& lane) {
            const auto plan = lane.shape().all_reduce(lane.size(), lane.rank());
            auto& state = lane.template workspace<empty_state<typename Group::transport_type>>();
            return lane.run(
                {.kind = operation::barrier, .options = options},
                [&](auto& call) { return synchronise_on(lane, call, plan, state); }, names);
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
