#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// An aggregator that needs all contributions to a coordinate at once, and so no fold of two: a median. Only
/// `all_reduce` of dense tensors takes one, over a topology that folds at owners (`folds_at_owners`).
///
/// `combine(values)` gets the values of all ranks that contribute, at one coordinate, in ascending order of ranks.
/// There is at least one. It may reorder them and overwrites them at will. Laws: the result depends neither on the
/// order nor on anything else than the values; that of equal values is that value. It may throw. `least_ranks()` is the
/// smallest group whose call is not refused.
template <class A, class T>
concept JointAggregator = Regular<A> && Element<T> && requires(const A& aggregator, std::span<T> values) {
    { aggregator.combine(values) } -> std::same_as<T>;
    { aggregator.least_ranks() } -> std::same_as<int>;
    { A::name } -> std::convertible_to<const char*>;
};

namespace detail {

/// Whether a collective takes A as a `JointAggregator`.
template <class A>
concept MeantAsJoint = requires(const A& aggregator) { aggregator.least_ranks(); };

}  // namespace detail
}}  // namespace rill::RILL_ABI
