#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/front.hpp>
#include <rill/collective/rooted.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI {

/// Folds the contributions of all ranks and leaves the result at `root`. No rank returns before the root has it, so
/// that every receipt is true of the result. Runs on the group's topology where it has a root, else on a binary tree.
///
/// `input`: N elements, unchanged. `output`: N elements at the root, apart from `input` or the same; not touched
/// elsewhere. Otherwise as `all_reduce`.
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out, class Fold = aggregate::sum>
receipt reduce(Group& group, const In& input, Out&& output, rank_t root, const Fold& fold = {}) {
    using T = detail::element_of<Out>;
    const auto shape = detail::rooted(group.shape());
    static_cast<void>(detail::require_foldable<T, Fold, decltype(detail::rooted(group.shape()))>());
    detail::require_root(group, root);
    const std::span<const T> mine(input);
    const bool is_root = group.rank() == root;
    RILL_EXPECTS(!is_root || std::span<T>(output).size() == mine.size(),
                 "reduce: at the root input and output must be of one size");
    auto& state = group.template workspace<dense_state<typename Group::transport_type, T, Fold>>();
    auto& accumulator = group.template workspace<aligned_vector<T>>();
    const auto plan = shape.reduce(group.size(), group.rank(), root);
    const auto signature =
        detail::signature_of<T>(operation::reduce, mine.size(), fold, 0, static_cast<std::uint64_t>(root));
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) {
            if (!is_root) accumulator.resize(mine.size());
            const std::span<T> target = is_root ? std::span<T>(output) : std::span<T>(accumulator);
            state.begin(head, plan.parts(), mine, target, tally{}, fold);
        },
        [&](receipt& result) {
            detail::all_of(group).describe(result);
            if (is_root) state.finish({0, plan.parts()});
        });
}

/// The same on streams; `output` is empty but at the root.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
               const Fold& fold = {}, const stream_codings& codings = {}) {
    const auto shape = detail::rooted(group.shape());
    static_cast<void>(detail::require_foldable<T, Fold, decltype(detail::rooted(group.shape()))>());
    detail::require_root(group, root);
    RILL_EXPECTS(&input != &output, "reduce: a stream cannot be its own output");
    RILL_EXPECTS(codings.copy.is_lossless(), "reduce: nothing is copied, so nothing can be coded there");
    auto& state = group.template workspace<stream_state<typename Group::transport_type, T, Index, Fold>>();
    const auto plan = shape.reduce(group.size(), group.rank(), root);
    const auto signature =
        detail::signature_of<T>(operation::reduce, input.dimension(), fold, std::uint8_t{sizeof(Index)},
                                mix64(codings.fingerprint(), static_cast<std::uint64_t>(root)));
    return detail::run_schedule(
        group, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input.view(), tally{}, fold, codings, group.key());
        },
        [&](receipt& result) {
            detail::all_of(group).describe(result);
            if (group.rank() == root)
                state.finish({0, plan.parts()}, output);
            else
                output.clear(input.range());
        });
}

}  // namespace rill::inline RILL_ABI
