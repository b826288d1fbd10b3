// Compile-time errors that name what a type lacks to model `Aggregator`.
#pragma once

#include <rill/concept/aggregator.hpp>
#include <rill/concept/detail/first_unmet.hpp>
#include <rill/concept/detail/require_compressor.hpp>
#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Names the first requirement of `Aggregator` that A does not meet for elements T.
template <class A, class T>
consteval bool require_aggregator() {
    constexpr int unmet = first_unmet(
        !MeantAsCompressor<A>, !std::invocable<const A&, T, T>, EqualityComparable<A>, Regular<A>,
        requires(const A& a) {
            { a.template identity<T>() } -> std::same_as<T>;
        },
        requires(const A& a, T x, T y) {
            { a.fold(x, y) } -> std::same_as<T>;
        }, requires(const A& a, std::span<T> values) { a.finish(values, 1.0); },
        requires {
            A::is_commutative;
            A::finish_is_trivial;
        }, requires { A::name; });
    static_assert(unmet != 0,
                  "rill::collective: a compressor stands where the aggregator is expected; only all_reduce and "
                  "rounds::reduce take one, once, before the aggregator");
    static_assert(unmet != 1,
                  "rill::collective: a function stands where the aggregator is expected; use aggregate::sum, mean, min "
                  "or max, or write a type that models rill::Aggregator");
    static_assert(unmet != 2,
                  "rill::Aggregator: operator== is missing, by which ranks compare their options; add `friend bool "
                  "operator==(const A&, const A&) = default;`");
    static_assert(unmet != 3,
                  "rill::Aggregator: a default constructor or a copy is missing, as std::regular asks; make the "
                  "aggregator a value");
    static_assert(unmet != 4,
                  "rill::Aggregator: identity<T>() is missing; add `template <class T> static constexpr T identity()`, "
                  "the value that a fold leaves as it is");
    static_assert(unmet != 5,
                  "rill::Aggregator: fold(x, y) is missing; add `template <class T> static constexpr T fold(T, T)`");
    static_assert(
        unmet != 6,
        "rill::Aggregator: finish(values, weight) is missing for this element type (a mean of integers?); add "
        "`template <class T> static void finish(std::span<T>, double)`, or use another element type");
    static_assert(unmet != 7,
                  "rill::Aggregator: a flag is missing; add `static constexpr bool` is_commutative and "
                  "finish_is_trivial");
    static_assert(unmet != 8, "rill::Aggregator: name is missing; add `static constexpr const char* name`");
    static_assert(unmet != -1 || Aggregator<A, T>, "rill::Aggregator: a member is missing; see rill::Aggregator");
    return unmet == -1 && Aggregator<A, T>;
}

}}}  // namespace rill::RILL_ABI::detail
