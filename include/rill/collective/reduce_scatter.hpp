#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/front.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI {

/// Folds the contributions of all ranks and leaves each rank r with part r: `split(N, P, r)`.
///
/// `input`: N elements, unchanged. `output`: `split(N, P, rank).size()` elements, apart from `input`. Memory: up to N
/// elements of scratch. Otherwise as `all_reduce`.
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out, class Fold = aggregate::sum>
receipt reduce_scatter(Group& group, const In& input, Out&& output, const Fold& fold = {}) {
    using T = detail::element_of<Out>;
    static_cast<void>(detail::require_foldable<T, Fold, typename Group::topology_type>());
    const std::span<const T> all(input);
    const std::span<T> mine(output);
    const auto rank = static_cast<std::size_t>(group.rank());
    RILL_EXPECTS(mine.size() == split(all.size(), static_cast<std::size_t>(group.size()), rank).size(),
                 "reduce_scatter: the output must have the size of this rank's part");
    auto& state = group.template workspace<dense_state<typename Group::transport_type, T, Fold>>();
    auto& accumulator = group.template workspace<aligned_vector<T>>();
    const auto plan = group.shape().reduce_scatter(group.size(), group.rank());
    const part_range mine_only{group.rank(), group.rank() + 1};
    return detail::run_schedule(
        group, detail::signature_of<T>(operation::reduce_scatter, all.size(), fold), plan, state,
        [&](const wire::header& head) {
            accumulator.resize(all.size());
            state.begin(head, plan.parts(), all, std::span<T>(accumulator), tally{}, fold);
        },
        [&](receipt& result) {
            state.total(group.rank()).describe(result);
            const std::span<T> folded = state.finish(mine_only);
            std::copy(folded.begin(), folded.end(), mine.begin());
        });
}

/// The same on streams; `output` covers `split(N, P, rank)`.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt reduce_scatter(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                       const stream_codings& codings = {}) {
    static_cast<void>(detail::require_foldable<T, Fold, typename Group::topology_type>());
    RILL_EXPECTS(codings.copy.is_lossless(), "reduce_scatter: nothing is copied, so nothing can be coded there");
    RILL_EXPECTS(&input != &output, "reduce_scatter: a stream cannot be its own output");
    auto& state = group.template workspace<stream_state<typename Group::transport_type, T, Index, Fold>>();
    const auto plan = group.shape().reduce_scatter(group.size(), group.rank());
    const auto signature = detail::signature_of<T>(operation::reduce_scatter, input.dimension(), fold,
                                                   std::uint8_t{sizeof(Index)}, codings.fingerprint());
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input.view(), tally{}, fold, codings, group.key());
        },
        [&](receipt& result) {
            state.total(group.rank()).describe(result);
            state.finish({group.rank(), group.rank() + 1}, output);
        });
}

}  // namespace rill::inline RILL_ABI
