// Shared by the public functions of all collectives: argument checks, signatures, running a schedule.
//
// Each overload has one `<collective>_call(group, arguments...)`: it checks the arguments and returns a callable that
// runs the collective on a lane. The blocking form calls it on the group; the non-blocking form starts it.
#pragma once

#include <rill/collective/dense_state.hpp>
#include <rill/collective/detail/chunks.hpp>
#include <rill/collective/detail/detours.hpp>
#include <rill/collective/detail/overlap.hpp>
#include <rill/collective/detail/requirements.hpp>
#include <rill/collective/detail/tensor_access.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/collective/start.hpp>
#include <rill/collective/stream_state.hpp>
#include <rill/collective/tensors.hpp>
#include <rill/concept/aggregator.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/segment.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/tree.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The contributors of a result to which every rank of the group contributes once.
template <class Group>
contribution_sum all_of(const Group& group) {
    return {static_cast<double>(group.size()), static_cast<std::uint32_t>(group.size()), 0};
}

/// The states (data and scratch) of the operations that run on a lane.
template <class Lane, class T, class Fold>
using dense_state_of = dense_state<typename Lane::transport_type, T, Fold, typename Lane::executor_type>;
template <class Lane, class T, class Index, class Fold>
using stream_state_of =
    stream_state<typename Lane::transport_type, T, Index, folding<Fold>, typename Lane::executor_type>;

/// This rank's segment of N elements that are split among the ranks.
template <class Group>
segment part_of(const Group& group, std::size_t count) {
    return split(count, static_cast<std::size_t>(group.size()), static_cast<std::size_t>(group.rank()));
}

/// Requires that input and output are the same memory or do not overlap, for all collectives that may run in place.
/// `first`: the output coordinate of the input's first element.
template <class In, class Out>
void require_in_place_or_apart([[maybe_unused]] const In& in, [[maybe_unused]] const Out& out,
                               [[maybe_unused]] std::size_t first = 0) {
    RILL_EXPECTS(
        have_apart(in, out, sharing::same_coordinates, first),
        "input and output overlap in part: pass the same memory for both, or memory that has nothing in common");
}

/// A group whose calls belong to a step that can be undone: a `step_group`.
template <class Group>
concept CanBeUndone = requires(const Group& group) { group.step(); };

inline void require_weight([[maybe_unused]] const contribution& own) {
    RILL_EXPECTS(own.weight >= 0 && own.weight <= 1e28, "a contribution's weight is a number from 0 to 1e28");
}

/// The topology of `reduce` and `broadcast`: the group's own if it is a `RootedTopology`, else a binary tree.
template <class Shape>
constexpr auto rooted(const Shape& shape) {
    if constexpr (RootedTopology<Shape>)
        return shape;
    else
        return topology::tree{};
}

template <class Group>
void require_root(const Group& group, rank_t root) {
    RILL_EXPECTS(0 <= root && root < group.size(), "the root must be a rank of the group");
}

/// What all ranks must agree on in a call, in addition to aggregator, element types and dimension.
struct alike {
    std::uint64_t coding = 0;
    std::uint64_t compressor = 0;
    rank_t root = 0;
    int chunks = 0;
};

/// `aggregator`: its fingerprint.
template <class T>
call_signature signature_of(operation kind, std::size_t dimension, std::uint64_t aggregator, const alike& more,
                            std::uint8_t index_bytes = 0) {
    return {.kind = kind,
            .element = element_type_of<T>,
            .index_bytes = index_bytes,
            .dimension = dimension,
            .options = collective_options.with({option_hash(aggregator), option_hash(more.coding),
                                                option_hash(more.compressor), static_cast<std::uint32_t>(more.root),
                                                static_cast<std::uint32_t>(more.chunks)})};
}

/// Runs a schedule on a state as the lane's next operation: `begin(call)` fills the state, `end(receipt)` takes the
/// result out of it.
template <class Lane, class State, class Plan, class Begin, class End>
receipt run_schedule(Lane& lane, const call_signature& signature, const Plan& plan, State& state, Begin&& begin,
                     End&& end) {
    return lane.run(signature, [&](auto& call) {
        state.attach(call, lane.executor());
        begin(frame_header_of(call));
        receipt result{.rounds = rounds_of(plan)};
        execute_on(lane, call, plan, state, result);
        end(result);
        return result;
    });
}

/// Takes the result of a `stream_state_of` into `output`.
template <class State, class Out, class Fold>
void take_finished(State& state, part_range parts, Out&& output, const Fold& fold) {
    state.finish(parts, output);
    if constexpr (requires { output.values(); })
        finish_folded(fold, output.values(), state.total(parts.first).weight);
    else
        finish_folded(fold, output, state.total(parts.first).weight);
}

}}}  // namespace rill::RILL_ABI::detail
