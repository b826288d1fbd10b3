#pragma once

#include <rill/concept/detouring_topology.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/segment.hpp>
#include <rill/topology/chunked.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The coordinates of consecutive chunks, where N coordinates are split into parts and each part into `chunks`.
/// `count`: of all chunks.
[[gnu::noinline]] inline segment range_of_chunks(std::size_t size, std::size_t count, std::size_t chunks,
                                                 part_range of) {
    if (of == part_range{0, static_cast<int>(count)}) return {0, size};  // needs no division
    const auto chunk = [=](int i) {
        const auto at = static_cast<std::size_t>(i);
        const segment part = split(size, count / chunks, at / chunks);
        const segment inside = split(part.size(), chunks, at % chunks);
        return segment{part.begin + inside.begin, part.begin + inside.end};
    };
    const segment first = chunk(of.first);
    return {first.begin, of.count() == 0 ? first.begin : chunk(of.last - 1).end};
}

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

/// How many chunks each part of a stream of N coordinates has: a power of two, alike on all transports. Only where each
/// part is folded at its owner, so that all operands are contributions.
template <class Lane, Schedule Plan>
int chunks_of_stream(const Lane& lane, const Plan& plan, std::size_t dimension, std::size_t entries) {
    constexpr std::size_t most = topology::chunked_schedule<Plan>::most_ahead;  // sums are sent before any is received
    if (entries == 0 || lane.size() == 1 || !folds_at_owners(lane.shape()) || !topology::can_be_cut(plan)) return 1;
    const std::size_t part = dimension / static_cast<std::size_t>(plan.parts());
    return static_cast<int>(std::bit_floor(std::clamp<std::size_t>(part / entries, 1, most)));
}

/// Whether chunks of streams travel in messages of their own: where the transport asks for chunks of dense vectors.
template <class Net>
bool sends_chunks([[maybe_unused]] const Net& net) {
    if constexpr (ChunkingTransport<Net>)
        return net.chunk_bytes() != std::numeric_limits<std::size_t>::max();
    else
        return false;
}

/// The rounds of the topology, not multiplied by the number of chunks.
template <Schedule Plan>
int rounds_of(const Plan& plan) {
    if constexpr (requires { plan.chunks(); }) return plan.rounds() / plan.chunks();
    return plan.rounds();
}

}}}  // namespace rill::RILL_ABI::detail
