#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/front.hpp>
#include <rill/concept/compressor.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace rill::inline RILL_ABI {

/// Takes every result.
struct accept_any {
    constexpr bool operator()(const receipt&) const { return true; }
};

namespace detail {
template <class Lane, class T, class Fold>
receipt all_reduce_dense(Lane& lane, std::span<const T> input, std::span<T> output, const Fold& fold,
                         const contribution& own) {
    auto& state = lane.template workspace<dense_state<typename Lane::transport_type, T, Fold>>();
    const auto plan = in_chunks(lane.net(), lane.shape().all_reduce(lane.size(), lane.rank()), output.size_bytes());
    const auto chunks = static_cast<std::uint64_t>(plan.chunks());
    return run_schedule(
        lane, signature_of<T>(operation::all_reduce, output.size(), fold, 0, chunks), plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input, output, tally::of(own), fold, plan.chunks());
        },
        [&](receipt& result) {
            state.total(0).describe(result);
            state.finish({0, plan.parts()});
        });
}

/// `contribute()` gives the input as a view, inside the operation, so that its failure is every rank's.
template <IndexType Index, class T, class Lane, class Contribute, class Output, class Fold>
receipt all_reduce_stream(Lane& lane, std::size_t dimension, Contribute&& contribute, Output&& output, const Fold& fold,
                          const stream_codings& codings, const contribution& own) {
    auto& state = lane.template workspace<stream_state<typename Lane::transport_type, T, Index, Fold>>();
    const auto plan = lane.shape().all_reduce(lane.size(), lane.rank());
    const auto signature =
        signature_of<T>(operation::all_reduce, dimension, fold, std::uint8_t{sizeof(Index)}, codings.fingerprint());
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            const stream_view<T, Index> nothing({0, dimension}, sparse_view<T, Index>{});
            state.begin(head, plan.parts(), own.weight == 0 ? nothing : contribute(), tally::of(own), fold, codings,
                        lane.key());
        },
        [&](receipt& result) {
            state.total(0).describe(result);
            state.finish({0, plan.parts()}, output);
        });
}

/// Commits what a codec sent when the operation has succeeded, and gives it back when it has not.
template <class Codec>
class transaction {
  public:
    explicit transaction(Codec& codec) : codec_(codec) {}
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        if (!committed_) codec_.rollback();
    }
    void commit() {
        codec_.commit();
        committed_ = true;
    }

  private:
    Codec& codec_;
    bool committed_ = false;
};

template <class Lane, class T, class Codec, class Fold, class Accept>
receipt all_reduce_coded(Lane& lane, std::span<const T> gradient, std::span<T> result, Codec& codec, const Fold& fold,
                         const contribution& own, const Accept& accept) {
    using Index = typename Codec::index_type;
    transaction attempt(codec);
    codec.begin(lane.next_number());
    const std::size_t dimension = codec.coded_dimension();
    const auto contribute = [&] { return codec.encode(gradient); };
    receipt done;
    if constexpr (Codec::is_coordinatewise) {
        done = all_reduce_stream<Index, T>(lane, dimension, contribute, result, fold, codec.codings(), own);
    } else {
        auto& folded = lane.template workspace<aligned_vector<T>>();
        folded.resize(dimension);
        done =
            all_reduce_stream<Index, T>(lane, dimension, contribute, std::span<T>(folded), fold, codec.codings(), own);
        codec.decode(std::span<const T>(folded), result);
    }
    if (accept(done)) attempt.commit();
    return done;
}

template <class Group, ContiguousRange In, ContiguousRange Out, class Fold = aggregate::sum>
    requires(!Compressor<Fold, element_of<Out>>)
auto all_reduce_call(const Group&, const In& in, Out&& out, const Fold& fold = {}, const contribution& own = {}) {
    using T = element_of<Out>;
    if constexpr (require_foldable<T, Fold, typename Group::topology_type>()) {
        const std::span<const T> input(in);
        const std::span<T> output(out);
        require_weight(own);
        RILL_EXPECTS(input.size() == output.size() || own.weight == 0,
                     "all_reduce: input and output must be of one size");
        return [=](typename Group::lane_type& lane) { return all_reduce_dense(lane, input, output, fold, own); };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
auto all_reduce_call(const Group&, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                     const stream_codings& codings = {}, const contribution& own = {}) {
    if constexpr (require_foldable<T, Fold, typename Group::topology_type>()) {
        require_weight(own);
        RILL_EXPECTS(&input != &output, "all_reduce: a stream cannot be its own output");
        RILL_EXPECTS(Group::topology_type::has_copy_phase || codings.copy.is_lossless(),
                     "all_reduce: this topology has no copy phase, so nothing can be coded there");
        return [=, &input, &output](typename Group::lane_type& lane) {
            return all_reduce_stream<Index, T>(
                lane, input.dimension(), [&] { return input.view(); }, output, fold, codings, own);
        };
    } else {
        return no_call{};
    }
}

template <class Group, ContiguousRange In, ContiguousRange Out, class Codec, class Fold = aggregate::sum,
          class Accept = accept_any>
    requires Compressor<Codec, element_of<Out>>
auto all_reduce_call(const Group& group, const In& in, Out&& out, Codec& codec, const Fold& fold = {},
                     const contribution& own = {}, const Accept& accept = {}) {
    using T = element_of<Out>;
    using Shape = typename Group::topology_type;
    if constexpr (require_foldable<T, Fold, Shape>() && require_copy_phase<Codec, Shape>()) {
        const std::span<const T> input(in);
        const std::span<T> output(out);
        require_weight(own);
        RILL_EXPECTS(input.size() == codec.dimension(), "all_reduce: the compressor is bound to another dimension");
        RILL_EXPECTS(output.size() == input.size(), "all_reduce: input and output must be of one size");
        auto loan = group.lend(&codec, "all_reduce: the compressor is in another operation, which has not ended");
        return [=, &codec, loan = std::move(loan)](typename Group::lane_type& lane) {
            return all_reduce_coded(lane, input, output, codec, fold, own, accept);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks, coordinate by coordinate, and gives every rank the result, bit for bit the
/// same.
///
/// `input`, `output`: contiguous ranges of N elements; the same memory or none in common. Rounds, messages and bytes
/// are the topology's. Deterministic: on any transport the bits depend on topology, ranks and inputs alone. Errors:
/// `mismatch`, `timeout`, `peer_failure`, `invalid_value`, on every rank and naming the culprit; `input` is unchanged
/// (lost where it is also the output), `output` unspecified.
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out, class Fold = aggregate::sum>
    requires(!Compressor<Fold, detail::element_of<Out>>)
receipt all_reduce(Group& group, const In& input, Out&& output, const Fold& fold = {}, const contribution& own = {}) {
    return detail::all_reduce_call(group, input, output, fold, own)(group);
}

/// The same on streams: the result is sparse until a fold finds the dense form to be the smaller one (`codings.when`).
/// SSAR_Recursive_double, SSAR_Split_allgather and the sparse ring of SparCML (section 5.3) are this with
/// `recursive_doubling`, `split_allgather`, `ring`; DSAR_Split_allgather is `split_allgather` with a lossy
/// `codings.copy`.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt all_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                   const stream_codings& codings = {}, const contribution& own = {}) {
    return detail::all_reduce_call(group, input, output, fold, codings, own)(group);
}

/// The same with a compressor bound to this worker: contributes what `codec` makes of `input`. Its state (the residual
/// of error feedback) advances only if the operation succeeds with this rank's contribution in it.
/// `accept(receipt)` may refuse the result as a whole, the same on all ranks: then the contribution returns to the
/// codec.
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out, class Codec,
          class Fold = aggregate::sum, class Accept = accept_any>
    requires Compressor<Codec, detail::element_of<Out>>
receipt all_reduce(Group& group, const In& input, Out&& output, Codec& codec, const Fold& fold = {},
                   const contribution& own = {}, const Accept& accept = {}) {
    return detail::all_reduce_call(group, input, output, codec, fold, own, accept)(group);
}

/// All three in the background, with the same arguments. Policies are copied; ranges, streams and the compressor must
/// stay until the operation is done. A compressor serves one operation at a time (checked).
///
/// Broken contracts are thrown by the start itself, before anything is sent; all other errors by the request's `get`.
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out, class Fold = aggregate::sum>
    requires(!Compressor<Fold, detail::element_of<Out>>)
request start_all_reduce(Group& group, In&& input, Out&& output, const Fold& fold = {}, const contribution& own = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group, detail::all_reduce_call(group, input, output, fold, own));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
request start_all_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                         const stream_codings& codings = {}, const contribution& own = {}) {
    return start(group, detail::all_reduce_call(group, input, output, fold, codings, own));
}
template <class Group, detail::ContiguousRange In, detail::ContiguousRange Out, class Codec,
          class Fold = aggregate::sum, class Accept = accept_any>
    requires Compressor<Codec, detail::element_of<Out>>
request start_all_reduce(Group& group, In&& input, Out&& output, Codec& codec, const Fold& fold = {},
                         const contribution& own = {}, const Accept& accept = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group, detail::all_reduce_call(group, input, output, codec, fold, own, accept));
}

}  // namespace rill::inline RILL_ABI
