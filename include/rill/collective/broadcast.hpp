#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/front.hpp>
#include <rill/collective/rooted.hpp>

#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI {

/// Copies `data` of `root` to all ranks. The root sends when all ranks have entered, so that a rank that calls
/// something else is an error on every rank. Runs on the group's topology where it has a root, else on a binary tree.
///
/// `data`: N elements; on other ranks than the root what it held is lost, also on failure. Errors as in `all_reduce`.
template <class Group, detail::ContiguousRange Data>
receipt broadcast(Group& group, Data&& data, rank_t root) {
    using T = detail::element_of<Data>;
    static_cast<void>(detail::require_foldable<T, aggregate::sum, typename Group::topology_type>());
    detail::require_root(group, root);
    const std::span<T> values(data);
    auto& state = group.template workspace<dense_state<typename Group::transport_type, T, aggregate::sum>>();
    const auto plan = detail::rooted(group.shape()).broadcast(group.size(), group.rank(), root);
    const auto signature = detail::signature_of<T>(operation::broadcast, values.size(), aggregate::sum{}, 0,
                                                   static_cast<std::uint64_t>(root));
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), std::span<const T>(values), values, tally{}, aggregate::sum{});
        },
        [](receipt& result) { tally{}.describe(result); });
}

/// The same for a stream, sparse or dense; on other ranks `data` needs only the dimension.
template <class Group, Element T, IndexType Index>
receipt broadcast(Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    detail::require_root(group, root);
    auto& state = group.template workspace<stream_state<typename Group::transport_type, T, Index, aggregate::sum>>();
    const auto plan = detail::rooted(group.shape()).broadcast(group.size(), group.rank(), root);
    const stream_codings codings{.copy = codes};
    const auto signature =
        detail::signature_of<T>(operation::broadcast, data.dimension(), aggregate::sum{}, std::uint8_t{sizeof(Index)},
                                mix64(codings.fingerprint(), static_cast<std::uint64_t>(root)));
    const stream_view<T, Index> nothing(data.range(), sparse_view<T, Index>{});
    const bool is_root = group.rank() == root;
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), is_root ? data.view() : nothing, tally{}, aggregate::sum{}, codings,
                        group.key());
        },
        [&](receipt& result) {
            tally{}.describe(result);
            if (is_root && codes.is_lossless()) return;
            auto& received = group.template workspace<stream<T, Index>>();
            state.finish({0, plan.parts()}, received);
            data.assign(received.view());
        });
}

}  // namespace rill::inline RILL_ABI
