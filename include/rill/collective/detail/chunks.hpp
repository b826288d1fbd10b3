#pragma once

#include <rill/concept/detouring_topology.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/topology/chunked.hpp>

#include <algorithm>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How many chunks a part of a dense vector travels in: enough that none exceeds `chunk` bytes, but at most 1024; 1 if
/// the schedule cannot be cut. While one chunk is folded and its next message announced, another is on the wire.
template <Schedule Plan>
int chunks_of(const Plan& plan, std::size_t bytes, std::size_t chunk) {
    constexpr std::size_t most = 1024;
    if (!topology::can_be_cut(plan)) return 1;
    const std::size_t part = bytes / static_cast<std::size_t>(plan.parts());
    return static_cast<int>(std::clamp<std::size_t>(part / chunk + (part % chunk != 0 ? 1U : 0U), 1, most));
}

/// By the `chunk_bytes` of the topology if it names detours, else by the transport's if it asks for chunks. `bytes`:
/// the size of the whole vector.
template <class Lane, Schedule Plan>
topology::chunked_schedule<Plan> in_chunks(const Lane& lane, const Plan& plan, std::size_t bytes) {
    if constexpr (DetouringTopology<typename Lane::topology_type>)
        return {plan, chunks_of(plan, bytes, lane.shape().chunk_bytes)};
    else if constexpr (ChunkingTransport<typename Lane::transport_type>)
        return {plan, chunks_of(plan, bytes, lane.net().chunk_bytes())};
    else
        return {plan, 1};
}

/// The rounds of the topology, not multiplied by the number of chunks.
template <Schedule Plan>
int rounds_of(const Plan& plan) {
    if constexpr (requires { plan.chunks(); }) return plan.rounds() / plan.chunks();
    return plan.rounds();
}

}}}  // namespace rill::RILL_ABI::detail
