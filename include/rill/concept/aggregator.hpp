#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/addition.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// How contributions are folded, coordinate by coordinate.
///
/// Laws: `fold` is associative (floating-point rounding aside), and `fold(identity, x) == x`. `is_commutative` says
/// whether `fold(x, y)` is always `fold(y, x)`; schedules that reorder ranks refuse folds that do not commute.
/// `finish(values, weight)` is applied once, on every rank alike, to the complete fold; `weight` is the sum of the
/// weights of the contributions. It works coordinate by coordinate and may be called on pieces. If `finish_is_trivial`,
/// it does nothing and is not called. Both functions may throw; if both are `noexcept`, small operations among threads
/// have one wait less.
template <class A, class T>
concept Aggregator = Regular<A> && Element<T> && requires(const A& aggregator, T x, T y, std::span<T> values) {
    { aggregator.template identity<T>() } -> std::same_as<T>;
    { aggregator.fold(x, y) } -> std::same_as<T>;
    { aggregator.finish(values, 1.0) };
    { A::is_commutative } -> std::convertible_to<bool>;
    { A::finish_is_trivial } -> std::convertible_to<bool>;
    { A::name } -> std::convertible_to<const char*>;
};

/// An aggregator whose `fold(x, y)` is `x + y`: `static constexpr bool is_addition = true`. Kernels have a fast path
/// for it.
template <class A>
concept AddingAggregator = requires { requires A::is_addition; };

/// An aggregator whose `finish` may run at the owner of each part before all_reduce's copy phase: `static constexpr
/// bool finishes_at_owners = true`. Then the finished part travels, so that the copy coding may suit finished values.
/// The owner of a sparse part makes it dense first, so `finish` may change the identity. Such an all_reduce needs a
/// topology with a copy phase.
template <class A>
concept OwnerFinishingAggregator = requires { requires A::finishes_at_owners; };

/// The fold of an aggregator in the form that kernels take. The aggregator must outlive it.
template <class A>
constexpr auto fold_of(const A& aggregator) {
    if constexpr (AddingAggregator<A>)
        return addition{};
    else
        return [&aggregator](auto x, auto y) { return aggregator.fold(x, y); };
}

/// An aggregator that differs from another one, its `folds_as`, in `finish` alone. That one has no options and a
/// trivial `finish`. What folds is compiled once for both.
template <class A>
concept FinishingAggregator = !OwnerFinishingAggregator<A> && requires { typename A::folds_as; };

namespace detail {

template <class A>
struct folding_of {
    using type = A;
};
template <FinishingAggregator A>
struct folding_of<A> {
    using type = typename A::folds_as;
};

/// The aggregator that folds what `A` folds.
template <class A>
using folding = typename folding_of<A>::type;

template <class A>
constexpr folding<A> folding_for(const A& aggregator) {
    if constexpr (FinishingAggregator<A>)
        return {};
    else
        return aggregator;
}

/// Finishes what `folding<A>` has folded and finished.
template <class A, class T>
void finish_folded(const A& aggregator, std::span<T> values, double weight) {
    if constexpr (FinishingAggregator<A>) aggregator.finish(values, weight);
}

}  // namespace detail
}}  // namespace rill::RILL_ABI
