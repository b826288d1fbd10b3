#pragma once

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
concept Aggregator = std::regular<A> && Element<T> && requires(const A& aggregator, T x, T y, std::span<T> values) {
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

/// The fold of an aggregator in the form that kernels take. The aggregator must outlive it.
template <class A>
constexpr auto fold_of(const A& aggregator) {
    if constexpr (AddingAggregator<A>)
        return addition{};
    else
        return [&aggregator](auto x, auto y) { return aggregator.fold(x, y); };
}

}}  // namespace rill::RILL_ABI
