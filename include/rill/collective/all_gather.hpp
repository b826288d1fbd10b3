#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/detail/call.hpp>
#include <rill/collective/gather_state.hpp>
#include <rill/core/detail/elements.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// Copies the input to its place in the output's elements.
template <class Lane, class In, class Out, class T>
void place_input(Lane& lane, const In& input, Out& output, std::span<T> at) {
    if (!has_view<std::span<T>>(output)) return read_tensor(input, at);
    // Evaluated first, because an expression may read the elements at its place.
    const std::span<const T> mine = elements_of_input(input, lane);
    if (at.data() != mine.data()) copy_elements(mine.data(), mine.size(), at.data());
}

template <class Lane, class In, class Out>
receipt all_gather_dense(Lane& lane, const In& input, Out& output) {
    using T = tensor_element<Out>;
    auto& state = lane.template workspace<dense_state_of<Lane, T, aggregate::sum>>();
    const std::size_t size = size_of(output);
    const auto plan = in_chunks(lane, lane.shape().all_gather(lane.size(), lane.rank()), size * sizeof(T));
    const segment place = part_of(lane, size);
    std::span<T> all;
    return run_schedule(
        lane, signature_of<T>(operation::all_gather, size, fingerprint(aggregate::sum{}), {.chunks = plan.chunks()}),
        plan, state,
        [&](const wire::header& head) {
            all = elements_of_output(output, lane);
            place_input(lane, input, output, all.subspan(place.begin, place.size()));
            state.begin(head, plan.parts(), std::span<const T>(all), all, contribution_sum{}, aggregate::sum{},
                        plan.chunks());
        },
        [&](receipt& result) {
            contribution_sum total{0, 0, 0};
            for (int part = 0; part < plan.parts(); part += plan.chunks()) total = total + state.total(part);
            total.describe(result);
            deliver(all, output);
        });
}

template <class Lane, class T, class Index>
receipt all_gather_stream(Lane& lane, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes) {
    auto& state = lane.template workspace<gather_state<typename Lane::transport_type, T, Index>>();
    const auto plan = lane.shape().all_gather(lane.size(), lane.rank());
    const auto signature = signature_of<T>(operation::all_gather, input.dimension(), fingerprint(aggregate::sum{}),
                                           {.coding = codes.fingerprint()}, std::uint8_t{sizeof(Index)});
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) { state.begin(head, input.view(), codes, lane.key()); },
        [&](receipt& result) {
            all_of(lane).describe(result);
            state.finish(output);
        });
}

template <class Group, class In, class Out>
    requires Tensors<In, Out>
auto all_gather_call(Group& group, In&& in, Out&& out) {
    if constexpr (require_group<Group>() && require_operation<In, Out, aggregate::sum, topology_of<Group>>()) {
        RILL_EXPECTS(size_of(in) == part_of(group, size_of(out)).size(),
                     "all_gather: the input must have the size of this rank's part");
        require_in_place_or_apart(in, out, part_of(group, size_of(out)).begin);
        return [input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return all_gather_dense(lane, input.get(), output.get());
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index>
auto all_gather_call(Group&, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes = {}) {
    RILL_EXPECTS(&input != &output, "all_gather: a stream cannot be its own output");
    RILL_EXPECTS(!input.is_dense(), "all_gather: a dense stream shares coordinates with every other");
    return
        [=, &input, &output](typename Group::lane_type& lane) { return all_gather_stream(lane, input, output, codes); };
}
}  // namespace detail

/// Gives every rank the parts of all ranks, in the order of ranks.
///
/// `input`: part `split(N, P, rank)` of the result, N = size of the output; it may lie at its place in the output.
/// Cost: rounds and bytes of the topology. Errors: as in `all_reduce`.
template <class Group, class In, class Out>
    requires detail::Tensors<In, Out>
receipt all_gather(Group& group, const In& input, Out&& output) {
    return detail::all_gather_call(group, input, std::forward<Out>(output))(group);
}

/// Concatenates sparse streams over one dimension whose coordinates are disjoint: every rank gets their union.
///
/// Cost: each contribution is coded once. Errors: as in `all_reduce`; if two ranks give the same coordinate,
/// `invalid_value` on every rank. It names the coordinate and both ranks; the culprit is the higher one. Source: sparse
/// allgather of SparCML, as in block coordinate descent.
template <class Group, Element T, IndexType Index>
receipt all_gather(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes = {}) {
    return detail::all_gather_call(group, input, output, codes)(group);
}

/// Start the two forms of `all_gather` in the background; see `start_all_reduce`.
template <class Group, class In, class Out>
    requires detail::Tensors<In, Out>
request start_all_gather(Group& group, In&& input, Out&& output) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group, detail::all_gather_call(group, detail::lasting_input<In>(input), std::forward<Out>(output)));
}
template <class Group, Element T, IndexType Index>
request start_all_gather(Group& group, const stream<T, Index>& input, stream<T, Index>& output,
                         const coding& codes = {}) {
    return start(group, detail::all_gather_call(group, input, output, codes));
}

}}  // namespace rill::RILL_ABI
