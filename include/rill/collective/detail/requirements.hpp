// What the collectives require of their arguments, and the messages that say what is missing.
#pragma once

#include <rill/collective/detail/require_group.hpp>
#include <rill/collective/detail/tensor_access.hpp>
#include <rill/concept/aggregator.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/detail/first_unmet.hpp>
#include <rill/concept/detail/require_aggregator.hpp>
#include <rill/concept/detail/require_compressor.hpp>
#include <rill/concept/joint_aggregator.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/types.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/stream.hpp>

#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

template <class X>
consteval bool require_input() {
    constexpr bool met = Tensor<X>;
    static_assert(
        met,
        "rill::collective: the input is not a tensor; pass a contiguous range, rill::tensors, or a tensor of a "
        "library whose adapter you include (rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp), or specialise "
        "rill::tensor_traits for its type");
    return met;
}

/// Checks an output. `X`: the type of the argument, a reference unless the argument is a temporary.
template <class X>
consteval bool require_output() {
    constexpr bool known = Tensor<X>;
    static_assert(
        known,
        "rill::collective: the output is not a tensor; pass a contiguous range, rill::tensors, or a tensor of "
        "a library whose adapter you include (rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp), or specialise "
        "rill::tensor_traits for its type");
    if constexpr (known) {
        static_assert(OutputTensor<X>,
                      "rill::collective: the output cannot be written to, because it is const or an expression; pass a "
                      "vector, matrix, map, block or view that is not const");
        constexpr bool stays = is_lasting<X>;
        static_assert(stays || !OutputTensor<X>,
                      "rill::collective: the output is a temporary that owns its values, so the result would be lost; "
                      "pass a variable or a span of one (if its type is a view, say so by is_view in its "
                      "rill::tensor_traits)");
        return OutputTensor<X> && stays;
    }
    return false;
}

/// Checks the input and the output of an operation.
template <class In, class Out>
consteval bool require_tensors() {
    constexpr bool are_tensors = require_input<In>() && require_output<Out>();
    if constexpr (are_tensors) {
        constexpr bool one_element = std::same_as<tensor_element<In>, tensor_element<Out>>;
        static_assert(one_element,
                      "rill::collective: input and output have different elements; convert one of them, nothing is "
                      "converted on the way");
        static_assert(same_order<In, Out>,
                      "rill::collective: input and output number their coordinates in different orders (row-major, "
                      "column-major); assign the input to a tensor of the output's order first");
        return one_element && same_order<In, Out>;
    }
    return false;
}

/// Checks the element type, the aggregator and the topology. Every collective calls checks like this one first: each
/// names the first requirement that is not met and returns whether all are met. They are evaluated where they are
/// called, so that their message comes first.
template <class T, class Fold, class Shape>
consteval bool require_foldable() {
    static_assert(Element<T>,
                  "rill::collective: this element type cannot travel; use float, double, std::int32_t or std::int64_t");
    constexpr bool is_joint = MeantAsJoint<Fold>;
    static_assert(!is_joint,
                  "rill::collective: the aggregator needs all contributions to a coordinate at once (median, "
                  "trimmed_mean); only all_reduce of dense tensors without a compressor takes it");
    if constexpr (Element<T> && !is_joint) {
        constexpr bool folds = require_aggregator<Fold, T>();
        if constexpr (folds && Topology<Shape>)
            static_assert(Fold::is_commutative || Shape::preserves_rank_order,
                          "rill::collective: the aggregator does not commute and the topology reorders ranks; use "
                          "topology::recursive_doubling, topology::split_allgather, topology::tree or topology::star");
        return folds;
    }
    return false;
}

/// Checks the tensors, the element type, the aggregator and the topology.
template <class In, class Out, class Fold, class Shape>
consteval bool require_operation() {
    if constexpr (require_tensors<In, Out>())
        return require_foldable<tensor_element<Out>, Fold, Shape>();
    else
        return false;
}

/// Checks the argument after the aggregator, which says how much this rank's contribution counts.
template <class Own>
consteval bool require_contribution() {
    constexpr int unmet = first_unmet(!MeantAsCompressor<Own>, std::convertible_to<const Own&, contribution>);
    static_assert(unmet != 0,
                  "rill::collective: the compressor stands behind the aggregator; write it before, as in "
                  "all_reduce(workers, input, output, codec, aggregate::mean{})");
    static_assert(unmet != 1,
                  "rill::collective: the argument behind the aggregator is not a rill::contribution; write its weight "
                  "as {.weight = 2}");
    return unmet == -1;
}

template <class X>
constexpr bool is_stream = false;
template <class T, class Index>
constexpr bool is_stream<stream<T, Index>> = true;

/// Operands of the overloads for tensors; a pair of streams has overloads of its own.
template <class In, class Out>
concept Tensors = !(is_stream<std::remove_cvref_t<In>> && is_stream<std::remove_cvref_t<Out>>);

/// Whether a collective takes an argument of type `Argument&&` as its codec.
template <class Argument>
concept MeantAsCodec = MeantAsCompressor<std::remove_cvref_t<Argument>>;

/// Additional check of `all_reduce` with a compressor: a lossy copy coding needs a copy phase (the rounds in which
/// finished parts are sent on unchanged). A topology that answers when the program runs (`holds_copy_phase()`) is asked
/// then.
template <class Codec, class Shape>
consteval bool require_copy_phase() {
    constexpr bool met =
        Codec::has_lossless_copy || Shape::has_copy_phase || requires(const Shape& shape) { shape.holds_copy_phase(); };
    static_assert(met,
                  "rill::all_reduce: the compressor has a lossy copy coding and the topology has no copy phase; use "
                  "topology::split_allgather, topology::ring, topology::tree or drop the copy coding");
    return met;
}

/// Additional check of `all_reduce`: finished parts travel in a copy phase.
template <class Fold, class Shape>
consteval bool require_finished_parts() {
    if constexpr (OwnerFinishingAggregator<Fold>) {
        constexpr bool met = Shape::has_copy_phase;
        static_assert(met,
                      "rill::all_reduce: the aggregator finishes parts at their owners and the topology has no copy "
                      "phase, in which finished parts travel; use topology::split_allgather, topology::ring, "
                      "topology::halving_doubling, topology::tree or topology::star");
        return met;
    }
    return true;
}

/// All checks of `all_reduce` of tensors.
template <class In, class Out, class Fold, class Shape>
consteval bool require_all_reduce() {
    if constexpr (!require_tensors<In, Out>()) {
        return false;
    } else if constexpr (!MeantAsJoint<Fold>) {
        if constexpr (require_foldable<tensor_element<Out>, Fold, Shape>())
            return require_finished_parts<Fold, Shape>();
        else
            return false;
    } else {
        static_assert(JointAggregator<Fold, tensor_element<Out>>,
                      "rill::JointAggregator: a member is missing for this element type (trimmed_mean of integers?); "
                      "see rill::JointAggregator");
        constexpr bool at_owners = may_fold_at_owners<Shape>;
        static_assert(at_owners,
                      "rill::all_reduce: the aggregator needs all contributions to a coordinate at once (median, "
                      "trimmed_mean), and the topology does not bring them together; use topology::split_allgather");
        return at_owners && JointAggregator<Fold, tensor_element<Out>>;
    }
}

/// What an output counts as when its type is compared with the input's: a stream as the vector that it stands for, and
/// a temporary one as a temporary vector.
template <class Out>
struct vector_of {
    using type = Out;
};
template <class T, class Index>
struct vector_of<stream<T, Index>&> {
    using type = std::span<T>;
};
template <class T, class Index>
struct vector_of<stream<T, Index>> {
    using type = std::vector<T>;
};
template <class Out>
constexpr bool is_stream_output = is_stream<std::remove_reference_t<Out>> && std::is_lvalue_reference_v<Out>;

/// Additional check of `all_reduce` with a compressor into a stream.
template <class Codec, class Index>
consteval bool require_stream_of() {
    static_assert(Codec::is_coordinatewise,
                  "rill::all_reduce: the compressor does not send coordinates of its input, so no stream can hold the "
                  "result; pass a dense output");
    constexpr bool one_index = std::same_as<Index, typename Codec::index_type>;
    static_assert(one_index,
                  "rill::all_reduce: output and compressor have different index types; bind the compressor to the "
                  "stream's");
    return Codec::is_coordinatewise && one_index;
}

/// All checks of `all_reduce` with a compressor. `Argument`: the codec's type as it was passed.
template <class In, class Out, class Argument, class Fold, class Shape>
consteval bool require_coded_operation() {
    using vector = typename vector_of<Out>::type;
    using codec = std::remove_reference_t<Argument>;
    if constexpr (!require_tensors<In, vector>())
        return false;
    else if constexpr (!require_compressor<Argument&&, tensor_element<vector>>())
        return false;
    else if constexpr (!require_foldable<tensor_element<vector>, Fold, Shape>())
        return false;
    else if constexpr (is_stream_output<Out>)
        return require_copy_phase<codec, Shape>() && require_finished_parts<Fold, Shape>() &&
               require_stream_of<codec, typename std::remove_reference_t<Out>::index_type>();
    else
        return require_copy_phase<codec, Shape>() && require_finished_parts<Fold, Shape>();
}

/// All checks of `rounds::reduce` with a compressor: one that keeps its input's coordinates, or, where no contribution
/// counts in a later round than its own (`one_round`), one that chooses the same on all ranks.
template <class In, class Out, class Argument, class Fold, bool one_round>
consteval bool require_round_codec() {
    if constexpr (!require_tensors<In, Out>())
        return false;
    else if constexpr (!require_compressor<Argument&&, tensor_element<Out>>())
        return false;
    else {
        using codec = std::remove_reference_t<Argument>;
        constexpr bool stays = codec::is_coordinatewise, alike = AlikeCompressor<codec, tensor_element<Out>>;
        constexpr bool is_feedback = ResidualCompressor<codec>;
        static_assert(stays || alike || !is_feedback,
                      "rill::rounds: error_feedback is around a compressor that chooses the same entries on all ranks, "
                      "which rounds take by itself alone; use random_mask without error_feedback, or top_k with it");
        static_assert(stays || alike || is_feedback,
                      "rill::rounds: the compressor makes its output from the fold of all ranks on all of them "
                      "(PowerSGD); use top_k, bucket_top_k, threshold, keep_all or random_mask");
        static_assert(stays || !alike || one_round,
                      "rill::rounds: the compressor chooses other entries in each round (random_mask), and the "
                      "staleness lets contributions of other rounds count; use straggler::fresh");
        if constexpr (stays || (alike && one_round))
            return require_foldable<tensor_element<Out>, Fold, void>();
        else
            return false;
    }
}

/// Takes the place of a call whose arguments were refused.
struct no_call {
    template <class Lane>
    receipt operator()(Lane&) const {
        return {};
    }
};

/// Checks the output of a non-blocking form.
template <class Out>
consteval bool require_lasting() {
    static_assert(
        is_lasting<Out>,
        "rill::start: an argument is a temporary that owns its values, which are gone before the operation is "
        "done; pass a variable or a span");
    return true;
}
/// Checks the input and the output of a non-blocking form.
template <class In, class Out>
consteval bool require_lasting() {
    if constexpr (!is_evaluated_at_start<In>) require_lasting<In>();
    return require_lasting<Out>();
}

}}}  // namespace rill::RILL_ABI::detail
