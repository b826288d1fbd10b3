#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/detail/call.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
template <class Lane, class Data>
receipt broadcast_dense(Lane& lane, Data& data, rank_t root) {
    using T = tensor_element<Data>;
    auto& state = lane.template workspace<dense_state_of<Lane, T, aggregate::sum>>();
    const auto plan = rooted(lane.shape()).broadcast(lane.size(), lane.rank(), root);
    const auto signature =
        signature_of<T>(operation::broadcast, size_of(data), fingerprint(aggregate::sum{}), {.root = root});
    const bool is_root = lane.rank() == root;
    std::span<T> values;
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            values = elements_of_output(data, lane);
            if (is_root && !has_view<std::span<T>>(data)) read_tensor(data, values);
            state.begin(head, plan.parts(), std::span<const T>(values), values, contribution_sum{}, aggregate::sum{});
        },
        [&](receipt& result) {
            contribution_sum{}.describe(result);
            if (!is_root) deliver(values, data);
        });
}

template <class Lane, class T, class Index>
receipt broadcast_stream(Lane& lane, stream<T, Index>& data, rank_t root, const coding& codes) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, aggregate::sum>>();
    const auto plan = rooted(lane.shape()).broadcast(lane.size(), lane.rank(), root);
    const stream_codings codings{.copy = codes};
    const auto signature =
        signature_of<T>(operation::broadcast, data.dimension(), fingerprint(aggregate::sum{}),
                        {.coding = codings.fingerprint(), .root = root}, std::uint8_t{sizeof(Index)});
    const stream_view<T, Index> nothing(data.range(), sparse_view<T, Index>{});
    const bool is_root = lane.rank() == root;
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), is_root ? data.view() : nothing, contribution_sum{}, aggregate::sum{},
                        codings, lane.key());
        },
        [&](receipt& result) {
            contribution_sum{}.describe(result);
            if (is_root && codes.is_lossless()) return;
            auto& received = lane.template workspace<stream<T, Index>>();
            state.finish({0, plan.parts()}, received);
            data.assign(received.view());
        });
}

template <class Group, class Data>
auto broadcast_call(Group& group, Data&& data, rank_t root) {
    if constexpr (require_group<Group>() && require_operation<Data, Data, aggregate::sum, topology_of<Group>>()) {
        require_root(group, root);
        return [root, data = held<Data>(data)](typename Group::lane_type& lane) {
            return broadcast_dense(lane, data.get(), root);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index>
auto broadcast_call(Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    require_root(group, root);
    return [=, &data](typename Group::lane_type& lane) { return broadcast_stream(lane, data, root, codes); };
}
}  // namespace detail

/// Copies `data` of `root` to all ranks.
///
/// `data`: N elements; on ranks other than the root its old content is lost, also on failure. Runs on the group's
/// topology if that has a root, else on a binary tree. The root sends when all ranks have entered, so that a rank that
/// calls something else is an error on every rank. Errors: as in `all_reduce`.
template <class Group, class Data>
receipt broadcast(Group& group, Data&& data, rank_t root) {
    return detail::broadcast_call(group, std::forward<Data>(data), root)(group);
}

/// Broadcasts a stream, sparse or dense; on ranks other than the root, `data` needs only the dimension.
template <class Group, Element T, IndexType Index>
receipt broadcast(Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    return detail::broadcast_call(group, data, root, codes)(group);
}

/// Start the two forms of `broadcast` in the background; see `start_all_reduce`.
template <class Group, class Data>
request start_broadcast(Group& group, Data&& data, rank_t root) {
    static_assert(detail::require_lasting<Data>());
    return start(group, detail::broadcast_call(group, std::forward<Data>(data), root));
}
template <class Group, Element T, IndexType Index>
request start_broadcast(Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    return start(group, detail::broadcast_call(group, data, root, codes));
}

}}  // namespace rill::RILL_ABI
