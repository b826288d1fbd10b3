#pragma once

#include <rill/concept/topology.hpp>
#include <rill/topology/chunked.hpp>

#include <algorithm>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// In how many chunks a part of a dense vector travels: such that none has more bytes than the transport asks for, by a
/// member `chunk_bytes()`. While one chunk is folded, and its next message announced, another is on the wire.
template <class Net, Schedule Plan>
int chunks_of(const Net& net, const Plan& plan, std::size_t bytes) {
    if constexpr (requires { net.chunk_bytes(); }) {
        constexpr std::size_t most = 1024;
        if (!topology::can_be_cut(plan)) return 1;
        const std::size_t part = bytes / static_cast<std::size_t>(plan.parts()), chunk = net.chunk_bytes();
        return static_cast<int>(std::clamp<std::size_t>(part / chunk + (part % chunk != 0 ? 1U : 0U), 1, most));
    }
    return 1;
}

/// `bytes`: of the whole vector.
template <class Net, Schedule Plan>
topology::chunked_schedule<Plan> in_chunks(const Net& net, const Plan& plan, std::size_t bytes) {
    return {plan, chunks_of(net, plan, bytes)};
}

/// Of the topology, however many chunks go through each.
template <Schedule Plan>
int rounds_of(const Plan& plan) {
    if constexpr (requires { plan.chunks(); }) return plan.rounds() / plan.chunks();
    return plan.rounds();
}

}}}  // namespace rill::RILL_ABI::detail
