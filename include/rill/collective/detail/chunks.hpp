#pragma once

#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/topology/chunked.hpp>

#include <algorithm>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How many chunks a part of a dense vector travels in: enough that none exceeds the transport's `chunk_bytes()`, but
/// at most 1024; 1 if the transport is no `ChunkingTransport` or the schedule cannot be cut. While one chunk is folded
/// and its next message announced, another is on the wire.
template <class Net, Schedule Plan>
int chunks_of(const Net& net, const Plan& plan, std::size_t bytes) {
    if constexpr (ChunkingTransport<Net>) {
        constexpr std::size_t most = 1024;
        if (!topology::can_be_cut(plan)) return 1;
        const std::size_t part = bytes / static_cast<std::size_t>(plan.parts()), chunk = net.chunk_bytes();
        return static_cast<int>(std::clamp<std::size_t>(part / chunk + (part % chunk != 0 ? 1U : 0U), 1, most));
    }
    return 1;
}

/// `bytes`: the size of the whole vector.
template <class Net, Schedule Plan>
topology::chunked_schedule<Plan> in_chunks(const Net& net, const Plan& plan, std::size_t bytes) {
    return {plan, chunks_of(net, plan, bytes)};
}

/// The rounds of the topology, not multiplied by the number of chunks.
template <Schedule Plan>
int rounds_of(const Plan& plan) {
    return plan.rounds();
}
template <Schedule Plan>
int rounds_of(const topology::chunked_schedule<Plan>& plan) {
    return plan.rounds() / plan.chunks();
}

}}}  // namespace rill::RILL_ABI::detail
