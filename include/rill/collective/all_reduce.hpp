#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/detail/call.hpp>
#include <rill/collective/detail/fused_all_reduce.hpp>
#include <rill/collective/detail/joint_fold.hpp>
#include <rill/collective/detail/loans.hpp>
#include <rill/collective/detail/transaction.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/span_of.hpp>
#include <rill/stream/frame.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// Accepts every result.
struct accept_any {
    constexpr bool operator()(const receipt&) const { return true; }
};

namespace detail {
/// What `all_reduce_dense` needs of the tensors; none of it depends on their types. All are called inside the
/// operation, so that a failure is every rank's.
template <class T>
struct dense_call {
    std::size_t dimension;
    function_ref<std::span<const T>()> give;
    function_ref<std::span<T>()> room;  ///< the memory in which the result is computed
    function_ref<void(std::span<const T>)> take;
};

template <class Lane, class T, class Plan, class Fold>
receipt all_reduce_fused(Lane& lane, const call_signature& signature, const Plan& plan, const Fold& fold,
                         const contribution& own, const dense_call<T>& of) {
    using Net = typename Lane::transport_type;
    auto& state = lane.template workspace<fused_state<Net, T, Fold, typename Lane::executor_type>>();
    return lane.run(
        signature,
        [&](auto& call) {
            std::span<const T> contributed;
            if (own.weight != 0) contributed = of.give();
            const std::span<T> result = of.room();
            state.begin(call, lane.window(), contributed, result, contribution_sum::of(own), fold);
            receipt done{.rounds = rounds_of(plan)};
            state.run(lane.executor()).describe(done);
            state.count();
            of.take(result);
            return done;
        },
        collective_options, true);
}

template <class Lane, class T, class Fold>
[[gnu::noinline]] receipt all_reduce_dense(Lane& lane, const Fold& fold, const contribution& own,
                                           const dense_call<T>& of) {
    const auto plan = in_chunks(lane, lane.shape().all_reduce(lane.size(), lane.rank()), of.dimension * sizeof(T));
    const auto signature =
        signature_of<T>(operation::all_reduce, of.dimension, fingerprint(fold), {.chunks = plan.chunks()});
    if constexpr (may_be_fused<typename Lane::transport_type, typename Lane::topology_type>)
        if (lane.size() > 1 && folds_at_owners(lane.shape()))
            return all_reduce_fused(lane, signature, plan, fold, own, of);
    auto& state = lane.template workspace<dense_state_of<Lane, T, Fold>>();
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            std::span<const T> contributed;
            if (own.weight != 0) contributed = of.give();
            state.begin(head, plan.parts(), contributed, of.room(), contribution_sum::of(own), fold, plan.chunks());
        },
        [&](receipt& result) {
            state.total(0).describe(result);
            of.take(state.finish({0, plan.parts()}));
        });
}

/// What `all_reduce_streams` needs of a contribution, and what becomes of the result; none of it depends on the codec.
template <class T, class Index, class State, class Exec>
struct stream_call {
    std::size_t dimension;
    /// Returns the input as a view. Called inside the operation, so that its failure is every rank's.
    function_ref<stream_view<T, Index>()> give;
    /// If it is set and the coding of contributions is lossy, called for each part of the input as the receivers decode
    /// it. The whole input is encoded before anything is sent then.
    const function_ref<void(const stream_view<T, Index>&)>* take_received;
    function_ref<void(State&, part_range)> take;
    bool into_stream;  ///< the result is taken as a stream
    const stream_codings& codings;
    const frame_coder<T, Index, Exec>& coder;
};

/// `fold`: without what the aggregator finishes.
template <class Lane, class T, class Index, class State, class Fold>
[[gnu::noinline]] receipt all_reduce_streams(Lane& lane, const call_signature& signature, const Fold& fold,
                                             const contribution& own,
                                             const stream_call<T, Index, State, typename Lane::executor_type>& of) {
    auto& state = lane.template workspace<State>();
    const auto whole = lane.shape().all_reduce(lane.size(), lane.rank());
    const int chunks = chunks_of_stream(lane, whole, of.dimension, of.codings.message_entries);
    const topology::chunked_schedule plan(whole, sends_chunks(lane.net()) ? chunks : 1);
    const int parts = whole.parts() * chunks;
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            const stream_view<T, Index> nothing({0, of.dimension}, sparse_view<T, Index>{});
            state.begin(head, parts, own.weight == 0 ? nothing : of.give(), contribution_sum::of(own), fold, of.codings,
                        lane.key(), of.coder,
                        {.chunks = chunks,
                         .at_once = chunks / plan.chunks(),
                         .entries = of.codings.message_entries,
                         .into_stream = of.into_stream});
            if (of.take_received != nullptr && own.weight != 0 && !of.codings.contribution.is_lossless())
                state.for_each_contributed(*of.take_received);
        },
        [&](receipt& result) {
            state.total(0).describe(result);
            of.take(state, part_range{0, parts});
        });
}

/// `aggregator`: its fingerprint.
template <class T, class Index>
[[gnu::noinline]] call_signature stream_signature(std::size_t dimension, std::uint64_t aggregator,
                                                  const stream_codings& codings, std::uint64_t compressor) {
    return signature_of<T>(operation::all_reduce, dimension, aggregator,
                           {.coding = codings.fingerprint(), .compressor = compressor}, std::uint8_t{sizeof(Index)});
}

/// What `all_reduce_taken` needs of the tensors, the aggregator and the caller; none of it depends on their types.
template <class T, class State>
struct coded_call {
    function_ref<std::span<const T>()> give;      ///< called inside the operation, so that its failure is every rank's
    function_ref<void(State&, part_range)> take;  ///< takes the fold of what the codecs sent
    function_ref<bool(const receipt&)> accept;
    std::uint64_t aggregator;  ///< its fingerprint
    bool into_stream;          ///< the result is taken as a stream
    bool can_be_undone;        ///< the call belongs to a step that can be
};

/// `fold`: without what the aggregator finishes.
template <class T, class State, class Lane, class Codec, class Fold>
[[gnu::noinline]] receipt all_reduce_taken(Lane& lane, Codec& codec, const Fold& fold, const contribution& own,
                                           const coded_call<T, State>& of) {
    using Index = typename Codec::index_type;
    const auto encode = [&] {
        [[maybe_unused]] const auto selecting = named_span(lane.net(), "select");
        return encode_with(codec, of.give(), lane.executor());
    };
    codec.begin(lane.next_number());
    transaction attempt(codec, encode, own.weight != 0, of.can_be_undone);
    const stream_codings& codings = codec.codings();
    const std::size_t dimension = codec.coded_dimension();
    const auto give = [&]() -> stream_view<T, Index> { return attempt.give(); };
    const auto learn = [&](const stream_view<T, Index>& part) { attempt.take_received(part); };
    const function_ref<void(const stream_view<T, Index>&)> take_received = learn;
    using exec = typename Lane::executor_type;
    const receipt done = all_reduce_streams<Lane, T, Index, State>(
        lane, stream_signature<T, Index>(dimension, of.aggregator, codings, fingerprint_of(codec)), fold, own,
        {dimension, give, learns_received<stream_view<T, Index>>(codec) ? &take_received : nullptr, of.take,
         of.into_stream, codings, coder_of<codings_of<Codec>, T, Index, exec>});
    of.accept(done) ? attempt.commit() : attempt.rollback();
    return done;
}

/// `output`: a tensor or a stream.
template <class Lane, class In, class Out, class Codec, class Fold, class Accept>
receipt all_reduce_coded(Lane& lane, const In& input, Out& output, Codec& codec, const Fold& fold,
                         const contribution& own, const Accept& accept, bool can_be_undone) {
    using T = tensor_element<In>;
    using state_type = stream_state_of<Lane, T, typename Codec::index_type, Fold>;
    const auto give = [&] { return elements_of_input(input, lane); };
    const auto take = [&](state_type& state, part_range parts) {
        if constexpr (is_stream<Out>) {
            take_finished(state, parts, output, fold);
        } else {
            const std::span<T> result = elements_of_output(output, lane);
            if constexpr (Codec::is_coordinatewise) {
                take_finished(state, parts, result, fold);
            } else {
                auto& folded = lane.template workspace<aligned_vector<T>>();
                folded.resize(codec.coded_dimension());
                take_finished(state, parts, std::span<T>(span_of(folded)), fold);
                codec.decode(std::span<const T>(folded), result);
            }
            deliver(result, output);
        }
    };
    return all_reduce_taken<T, state_type>(lane, codec, folding_for(fold), own,
                                           {give, take, accept, fingerprint(fold), is_stream<Out>, can_be_undone});
}

/// What is known of codings only when the program runs.
template <Topology Shape>
void require_codings(const Shape& shape, const stream_codings& codings) {
    require_raw_sums(codings);
    RILL_EXPECTS(has_copy_phase(shape) || codings.copy.is_lossless(),
                 "all_reduce: this topology has no copy phase, so nothing can be coded there");
}

template <class Group, class In, class Out, class Fold = aggregate::sum, class Own = contribution>
    requires(Tensors<In, Out> && !MeantAsCodec<Fold>)
auto all_reduce_call(Group& group, In&& in, Out&& out, const Fold& fold = {}, const Own& weighted = {}) {
    if constexpr (require_group<Group>() && require_contribution<Own>() &&
                  require_all_reduce<In, Out, Fold, topology_of<Group>>()) {
        const contribution own = weighted;
        require_weight(own);
        RILL_EXPECTS(size_of(in) == size_of(out) || own.weight == 0,
                     "all_reduce: input and output must be of one size");
        if (own.weight != 0) require_in_place_or_apart(in, out);
        require_joint_group(fold, group.shape(), group.size(), group.rank());
        return [=, input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            using T = tensor_element<Out>;
            const auto give = [&] { return elements_of_input(input.get(), lane); };
            const auto room = [&] { return elements_of_output(output.get(), lane); };
            const auto take = [&](std::span<const T> made) { deliver(made, output.get()); };
            return all_reduce_dense<typename Group::lane_type, T>(lane, fold_for_state(fold), own,
                                                                  {size_of(output.get()), give, room, take});
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
    requires(!MeantAsCodec<Fold>)
auto all_reduce_call(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                     const stream_codings& codings = {}, const contribution& own = {}) {
    if constexpr (require_group<Group>() && require_foldable<T, Fold, topology_of<Group>>() &&
                  require_finished_parts<Fold, topology_of<Group>>()) {
        require_weight(own);
        RILL_EXPECTS(&input != &output, "all_reduce: a stream cannot be its own output");
        require_codings(group.shape(), codings);
        return [=, &input, &output](typename Group::lane_type& lane) {
            using exec = typename Group::executor_type;
            const auto give = [&] { return input.view(); };
            const auto take = [&](auto& state, part_range parts) { take_finished(state, parts, output, fold); };
            return all_reduce_streams<typename Group::lane_type, T, Index,
                                      stream_state_of<typename Group::lane_type, T, Index, Fold>>(
                lane, stream_signature<T, Index>(input.dimension(), fingerprint(fold), codings, 0), folding_for(fold),
                own, {input.dimension(), give, nullptr, take, true, codings, coder_of<coding_set{}, T, Index, exec>});
        };
    } else {
        return no_call{};
    }
}

template <class Group, class In, class Out, class Codec, class Fold = aggregate::sum, class Accept = accept_any>
    requires MeantAsCodec<Codec>
auto all_reduce_call(Group& group, In&& in, Out&& out, Codec&& codec, const Fold& fold = {},
                     const contribution& own = {}, const Accept& accept = {}) {
    if constexpr (require_group<Group>() && require_coded_operation<In, Out, Codec, Fold, topology_of<Group>>()) {
        require_weight(own);
        require_codings(group.shape(), codec.codings());
        RILL_EXPECTS(size_of(in) == codec.dimension(), "all_reduce: the compressor is bound to another dimension");
        if constexpr (!is_stream_output<Out>) {
            RILL_EXPECTS(size_of(out) == size_of(in), "all_reduce: input and output must be of one size");
            require_in_place_or_apart(in, out);
        }
        auto loan = lend(&codec, "all_reduce: the compressor is in another operation, which has not ended");
        if constexpr (CanBeUndone<Group>) group.step().keep(codec);
        return [=, input = held<In>(in), output = held<Out>(out), &codec,
                loan = std::move(loan)](typename Group::lane_type& lane) {
            return all_reduce_coded(lane, input.get(), output.get(), codec, fold, own, accept, CanBeUndone<Group>);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks, coordinate by coordinate, and gives every rank the result, bit for bit the
/// same.
///
/// `input`, `output`: tensors of N elements (contiguous ranges, types that an adapter knows, `tensors`), in the same
/// memory or without overlap. An input without a view of its memory (an expression, a strided block) is evaluated into
/// memory of the group; an output without one is computed there and then copied. A temporary output is a view; one
/// that owns its values does not compile, because the result would be lost. Cost: rounds, messages and bytes of the
/// topology. If ranks reach each other's memory (`SharedMemoryTransport`) and the topology `folds_at_owners`,
/// nothing is sent: one pass over all inputs and outputs gives the same bits, and each access counts as a message of
/// the topology. Deterministic: on any transport the bits depend on topology, ranks and inputs alone. Errors:
/// `mismatch`, `timeout`, `peer_failure`, `invalid_value`, on every rank and naming the culprit; `input` is unchanged
/// (lost if it is also the output), `output` unspecified. `fold` may be a `JointAggregator` (`median`, `trimmed_mean`),
/// if the topology `folds_at_owners`.
template <class Group, class In, class Out, class Fold = aggregate::sum, class Own = contribution>
    requires(detail::Tensors<In, Out> && !detail::MeantAsCodec<Fold>)
receipt all_reduce(Group& group, const In& input, Out&& output, const Fold& fold = {}, const Own& own = {}) {
    return detail::all_reduce_call(group, input, std::forward<Out>(output), fold, own)(group);
}

/// Folds streams: the result is sparse until a fold finds the dense form to be the smaller one (`codings.when`).
///
/// `codings.copy` codes the copy phase: the rounds in which finished parts are sent on unchanged. A part of many
/// entries may travel in several messages (`codings.message_entries`). `output` may exchange its memory with the
/// group's, so spans of its former content do not outlive the call. Otherwise as `all_reduce` of tensors. Source:
/// SparCML, section 5.3. SSAR_Recursive_double, SSAR_Split_allgather and the sparse ring are this function with
/// `recursive_doubling`, `split_allgather`, `ring`; DSAR_Split_allgather is `split_allgather` with a lossy
/// `codings.copy`.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
    requires(!detail::MeantAsCodec<Fold>)
receipt all_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                   const stream_codings& codings = {}, const contribution& own = {}) {
    return detail::all_reduce_call(group, input, output, fold, codings, own)(group);
}

/// Folds what each rank's `codec` makes of its `input`; the codec is a compressor bound to this worker.
///
/// `output`: a tensor, or a stream for callers that need only the entries present. The stream is sparse until a fold
/// finds the dense form to be the smaller one, so a result of few entries costs no pass over all N coordinates. It
/// needs a codec whose coordinates are those of its input.
///
/// Ranks may choose different entries and different numbers of them. What they must have alike (dimension, codings, the
/// seed of a mask) is compared. The codec's state (the residual of error feedback) advances only if the operation
/// succeeds with this rank's contribution in it. `accept(receipt)` may refuse the result as a whole, on all ranks
/// alike: then the contribution returns to the codec. Errors: as in `all_reduce` of tensors. If a `rill::error` is
/// thrown, however early, the contribution is in the residual and must not be given again; only an input that
/// `codec.encode` refuses (a NaN or an infinity) is not in the residual. A value that only its coding refuses (too
/// large for bfloat16) is in it, and the next call is refused too. In a `step_group` the end of the step decides
/// instead (see `step_scope`).
template <class Group, class In, class Out, class Codec, class Fold = aggregate::sum, class Accept = accept_any>
    requires detail::MeantAsCodec<Codec>
receipt all_reduce(Group& group, const In& input, Out&& output, Codec&& codec, const Fold& fold = {},
                   const contribution& own = {}, const Accept& accept = {}) {
    return detail::all_reduce_call(group, input, std::forward<Out>(output), std::forward<Codec>(codec), fold, own,
                                   accept)(group);
}

/// Start the three forms of `all_reduce` in the background, with the same arguments.
///
/// Policies are copied, and so are temporary views (spans, maps, blocks, `tensors`). What the views refer to, streams
/// and the compressor must stay until the operation is done. An input that is a temporary without memory of its own (an
/// expression) is evaluated by the start, into memory that it allocates. A compressor serves one operation at a time
/// (checked). Errors: broken contracts are thrown by the start itself, before anything is sent; all other errors by the
/// request's `get`.
template <class Group, class In, class Out, class Fold = aggregate::sum, class Own = contribution>
    requires(detail::Tensors<In, Out> && !detail::MeantAsCodec<Fold>)
request start_all_reduce(Group& group, In&& input, Out&& output, const Fold& fold = {}, const Own& own = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(
        group, detail::all_reduce_call(group, detail::lasting_input<In>(input), std::forward<Out>(output), fold, own));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
    requires(!detail::MeantAsCodec<Fold>)
request start_all_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                         const stream_codings& codings = {}, const contribution& own = {}) {
    return start(group, detail::all_reduce_call(group, input, output, fold, codings, own));
}
template <class Group, class In, class Out, class Codec, class Fold = aggregate::sum, class Accept = accept_any>
    requires detail::MeantAsCodec<Codec>
request start_all_reduce(Group& group, In&& input, Out&& output, Codec&& codec, const Fold& fold = {},
                         const contribution& own = {}, const Accept& accept = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group, detail::all_reduce_call(group, detail::lasting_input<In>(input), std::forward<Out>(output),
                                                std::forward<Codec>(codec), fold, own, accept));
}

}}  // namespace rill::RILL_ABI
