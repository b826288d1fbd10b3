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
/// have one wait less. If an optional `is_addition` is true, `fold(x, y)` is `x + y`, for which kernels have a fast
/// path. An optional type `folds_as` names an aggregator without options that differs in `finish` alone, which is
/// trivial: what it folds is compiled once for both.
template <class A, class T>
concept Aggregator = std::regular<A> && Element<T> && requires(const A& aggregator, T x, T y, std::span<T> values) {
    { aggregator.template identity<T>() } -> std::same_as<T>;
    { aggregator.fold(x, y) } -> std::same_as<T>;
    { aggregator.finish(values, 1.0) };
    { A::is_commutative } -> std::convertible_to<bool>;
    { A::finish_is_trivial } -> std::convertible_to<bool>;
    { A::name } -> std::convertible_to<const char*>;
};

/// The fold of an aggregator in the form that kernels take. The aggregator must outlive it.
template <class A>
constexpr auto fold_of(const A& aggregator) {
    if constexpr (requires { requires A::is_addition; })
        return addition{};
    else
        return [&aggregator](auto x, auto y) { return aggregator.fold(x, y); };
}

namespace detail {

template <class A>
struct folding_of {
    using type = A;
};
template <class A>
    requires requires { typename A::folds_as; }
struct folding_of<A> {
    using type = typename A::folds_as;
};

/// The aggregator that folds what `A` folds.
template <class A>
using folding = typename folding_of<A>::type;

template <class A>
constexpr folding<A> folding_for(const A& aggregator) {
    if constexpr (requires { typename A::folds_as; })
        return {};
    else
        return aggregator;
}

/// Finishes what `folding<A>` has folded and finished.
template <class A, class T>
void finish_folded(const A& aggregator, std::span<T> values, double weight) {
    if constexpr (requires { typename A::folds_as; }) aggregator.finish(values, weight);
}

}  // namespace detail
}}  // namespace rill::RILL_ABI
