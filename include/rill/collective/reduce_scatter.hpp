#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/detail/call.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
template <class Lane, class In, class Out, class Fold>
receipt reduce_scatter_dense(Lane& lane, const In& input, Out& output, const Fold& fold) {
    using T = tensor_element<Out>;
    auto& state = lane.template workspace<dense_state_of<Lane, T, Fold>>();
    auto& accumulator = lane.template workspace<aligned_vector<T>>();
    const std::size_t size = size_of(input);
    const auto plan = in_chunks(lane, lane.shape().reduce_scatter(lane.size(), lane.rank()), size * sizeof(T));
    const part_range own = plan.chunks_of(lane.rank());
    return run_schedule(
        lane, signature_of<T>(operation::reduce_scatter, size, fingerprint(fold), {.chunks = plan.chunks()}), plan,
        state,
        [&](const wire::header& head) {
            accumulator.resize(size);
            state.begin(head, plan.parts(), elements_of_input(input, lane), std::span<T>(accumulator),
                        contribution_sum{}, fold, plan.chunks());
        },
        [&](receipt& result) {
            state.total(own.first).describe(result);
            write_tensor(state.finish(own), output);
        });
}

template <class Lane, class T, class Index, class Fold>
receipt reduce_scatter_stream(Lane& lane, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold,
                              const stream_codings& codings) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, Fold>>();
    const auto plan = lane.shape().reduce_scatter(lane.size(), lane.rank());
    const auto signature = signature_of<T>(operation::reduce_scatter, input.dimension(), fingerprint(fold),
                                           {.coding = codings.fingerprint()}, std::uint8_t{sizeof(Index)});
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input.view(), contribution_sum{}, folding_for(fold), codings, lane.key());
        },
        [&](receipt& result) {
            state.total(lane.rank()).describe(result);
            take_finished(state, {lane.rank(), lane.rank() + 1}, output, fold);
        });
}

template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires Tensors<In, Out>
auto reduce_scatter_call(Group& group, In&& in, Out&& out, const Fold& fold = {}) {
    if constexpr (require_group<Group>() && require_operation<In, Out, Fold, topology_of<Group>>()) {
        RILL_EXPECTS(size_of(out) == part_of(group, size_of(in)).size(),
                     "reduce_scatter: the output must have the size of this rank's part");
        RILL_EXPECTS(have_apart(in, out, sharing::none), "reduce_scatter: input and output have memory in common");
        return [=, input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return reduce_scatter_dense(lane, input.get(), output.get(), fold);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
auto reduce_scatter_call(Group&, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                         const stream_codings& codings = {}) {
    if constexpr (require_group<Group>() && require_foldable<T, Fold, topology_of<Group>>()) {
        require_raw_sums(codings);
        RILL_EXPECTS(codings.copy.is_lossless(), "reduce_scatter: nothing is copied, so nothing can be coded there");
        RILL_EXPECTS(&input != &output, "reduce_scatter: a stream cannot be its own output");
        return [=, &input, &output](typename Group::lane_type& lane) {
            return reduce_scatter_stream(lane, input, output, fold, codings);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks and leaves part r, `split(N, P, r)`, at rank r.
///
/// `input`: N elements, unchanged. `output`: `split(N, P, rank).size()` elements, without overlap with `input`. Cost:
/// up to N elements of scratch. Otherwise as `all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
receipt reduce_scatter(Group& group, const In& input, Out&& output, const Fold& fold = {}) {
    return detail::reduce_scatter_call(group, input, std::forward<Out>(output), fold)(group);
}

/// Folds streams and leaves rank r with part r; `output` covers `split(N, P, rank)`.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt reduce_scatter(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                       const stream_codings& codings = {}) {
    return detail::reduce_scatter_call(group, input, output, fold, codings)(group);
}

/// Start the two forms of `reduce_scatter` in the background; see `start_all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
request start_reduce_scatter(Group& group, In&& input, Out&& output, const Fold& fold = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group,
                 detail::reduce_scatter_call(group, detail::lasting_input<In>(input), std::forward<Out>(output), fold));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
request start_reduce_scatter(Group& group, const stream<T, Index>& input, stream<T, Index>& output,
                             const Fold& fold = {}, const stream_codings& codings = {}) {
    return start(group, detail::reduce_scatter_call(group, input, output, fold, codings));
}

}}  // namespace rill::RILL_ABI
