#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/front.hpp>
#include <rill/collective/gather_state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI {

/// Gives every rank the parts of all ranks, in the order of ranks.
///
/// `input`: part `split(N, P, rank)` of the result, N = `output.size()`; it may lie at its place in the output. Rounds
/// and bytes are the topology's. Errors as in `all_reduce`.
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out>
receipt all_gather(Group& group, const In& input, Out&& output) {
    using T = detail::element_of<Out>;
    static_cast<void>(detail::require_foldable<T, aggregate::sum, typename Group::topology_type>());
    const std::span<const T> mine(input);
    const std::span<T> all(output);
    const segment place =
        split(all.size(), static_cast<std::size_t>(group.size()), static_cast<std::size_t>(group.rank()));
    RILL_EXPECTS(mine.size() == place.size(), "all_gather: the input must have the size of this rank's part");
    auto& state = group.template workspace<dense_state<typename Group::transport_type, T, aggregate::sum>>();
    const auto plan = group.shape().all_gather(group.size(), group.rank());
    const auto signature = detail::signature_of<T>(operation::all_gather, all.size(), aggregate::sum{});
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) {
            const std::span<T> at = all.subspan(place.begin, place.size());
            if (at.data() != mine.data()) std::copy(mine.begin(), mine.end(), at.begin());
            state.begin(head, plan.parts(), std::span<const T>(all), all, tally{}, aggregate::sum{});
        },
        [&](receipt& result) {
            tally total{0, 0, 0};
            for (int part = 0; part < plan.parts(); ++part) total = total + state.total(part);
            total.describe(result);
        });
}

/// Concatenates sparse streams over one dimension whose coordinates are disjoint (SparCML's sparse allgather, as in
/// block coordinate descent): every rank gets their union. Two ranks that give the same coordinate are an
/// `invalid_value` on every rank, naming it. Each contribution is coded once.
template <class Group, Element T, IndexType Index>
receipt all_gather(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes = {}) {
    RILL_EXPECTS(&input != &output, "all_gather: a stream cannot be its own output");
    RILL_EXPECTS(!input.is_dense(), "all_gather: a dense stream shares coordinates with every other");
    auto& state = group.template workspace<gather_state<typename Group::transport_type, T, Index>>();
    const auto plan = group.shape().all_gather(group.size(), group.rank());
    const auto signature = detail::signature_of<T>(operation::all_gather, input.dimension(), aggregate::sum{},
                                                   std::uint8_t{sizeof(Index)}, codes.fingerprint());
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) { state.begin(head, input.view(), codes, group.key()); },
        [&](receipt& result) {
            detail::all_of(group).describe(result);
            state.finish(output);
        });
}

}  // namespace rill::inline RILL_ABI
