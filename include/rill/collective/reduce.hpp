#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/detail/call.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// `output` is used only at the root.
template <class Lane, class In, class Out, class Fold>
receipt reduce_dense(Lane& lane, const In& input, Out& output, rank_t root, const Fold& fold) {
    using T = tensor_element<Out>;
    auto& state = lane.template workspace<dense_state_of<Lane, T, Fold>>();
    auto& accumulator = lane.template workspace<aligned_vector<T>>();
    const auto plan = rooted(lane.shape()).reduce(lane.size(), lane.rank(), root);
    const bool is_root = lane.rank() == root;
    const std::size_t size = size_of(input);
    return run_schedule(
        lane, signature_of<T>(operation::reduce, size, fingerprint(fold), {.root = root}), plan, state,
        [&](const wire::header& head) {
            if (!is_root) accumulator.resize(size);
            const std::span<const T> mine = elements_of_input(input, lane);
            const std::span<T> target = is_root ? elements_of_output(output, lane) : std::span<T>(accumulator);
            state.begin(head, plan.parts(), mine, target, contribution_sum{}, fold);
        },
        [&](receipt& result) {
            all_of(lane).describe(result);
            if (is_root) deliver(state.finish({0, plan.parts()}), output);
        });
}

template <class Lane, class T, class Index, class Fold>
receipt reduce_stream(Lane& lane, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
                      const Fold& fold, const stream_codings& codings) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, Fold>>();
    const auto plan = rooted(lane.shape()).reduce(lane.size(), lane.rank(), root);
    const auto signature =
        signature_of<T>(operation::reduce, input.dimension(), fingerprint(fold),
                        {.coding = codings.fingerprint(), .root = root}, std::uint8_t{sizeof(Index)});
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input.view(), contribution_sum{}, folding_for(fold), codings, lane.key());
        },
        [&](receipt& result) {
            all_of(lane).describe(result);
            if (lane.rank() == root)
                take_finished(state, {0, plan.parts()}, output, fold);
            else
                output.clear(input.range());
        });
}

/// The topology on which a group's reductions run.
template <class Group>
using rooted_topology_of = decltype(rooted(std::declval<topology_of<Group>>()));

template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires Tensors<In, Out>
auto reduce_call(Group& group, In&& in, Out&& out, rank_t root, const Fold& fold = {}) {
    if constexpr (require_group<Group>() && require_operation<In, Out, Fold, rooted_topology_of<Group>>()) {
        require_root(group, root);
        RILL_EXPECTS(group.rank() != root || size_of(out) == size_of(in),
                     "reduce: at the root input and output must be of one size");
        if (group.rank() == root) require_in_place_or_apart(in, out);
        return [=, input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return reduce_dense(lane, input.get(), output.get(), root, fold);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
auto reduce_call(Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
                 const Fold& fold = {}, const stream_codings& codings = {}) {
    if constexpr (require_group<Group>() && require_foldable<T, Fold, rooted_topology_of<Group>>()) {
        require_root(group, root);
        RILL_EXPECTS(&input != &output, "reduce: a stream cannot be its own output");
        require_raw_sums(codings);
        RILL_EXPECTS(codings.copy.is_lossless(), "reduce: nothing is copied, so nothing can be coded there");
        return [=, &input, &output](typename Group::lane_type& lane) {
            return reduce_stream(lane, input, output, root, fold, codings);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks and leaves the result at `root`.
///
/// `input`: N elements, unchanged. `output`: at the root N elements, in the same memory as `input` or without overlap;
/// not touched elsewhere. Runs on the group's topology if that has a root, else on a binary tree. No rank returns
/// before the root has the result, so that every receipt is true of it. Otherwise as `all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
receipt reduce(Group& group, const In& input, Out&& output, rank_t root, const Fold& fold = {}) {
    return detail::reduce_call(group, input, std::forward<Out>(output), root, fold)(group);
}

/// Reduces streams; on ranks other than the root, `output` becomes empty.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
               const Fold& fold = {}, const stream_codings& codings = {}) {
    return detail::reduce_call(group, input, output, root, fold, codings)(group);
}

/// Start the two forms of `reduce` in the background; see `start_all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
request start_reduce(Group& group, In&& input, Out&& output, rank_t root, const Fold& fold = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group,
                 detail::reduce_call(group, detail::lasting_input<In>(input), std::forward<Out>(output), root, fold));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
request start_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
                     const Fold& fold = {}, const stream_codings& codings = {}) {
    return start(group, detail::reduce_call(group, input, output, root, fold, codings));
}

}}  // namespace rill::RILL_ABI
