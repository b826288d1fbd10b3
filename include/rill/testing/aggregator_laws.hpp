#pragma once

#include <rill/concept/aggregator.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Small whole numbers, whose sums are exact in every type.
template <Element T>
std::vector<T> law_samples() {
    std::vector<T> all{T{0}, T{1}, T{-1}};
    random_sequence random(random_key{3});
    for (int i = 0; i < 9; ++i) all.push_back(static_cast<T>(random.below(2001)) - T{1000});
    return all;
}

/// Special values of floating-point types: NaN, infinities, zeros of both signs; and some ordinary values.
template <Element T>
std::vector<T> law_special_samples() {
    using limits = std::numeric_limits<T>;
    if constexpr (std::floating_point<T>)
        return {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), T{0}, -T{0}, T{1}, T{-4}, T{5}};
    else
        return {};
}

/// Whether two values are equal bit for bit; all NaNs count as equal.
template <Element T>
bool is_same_value(T x, T y) {
    if constexpr (std::floating_point<T>)
        return (x != x && y != y) || (x == y && std::signbit(x) == std::signbit(y));
    else
        return x == y;
}

template <Element T, class Fold>
bool identity_is_neutral(const Fold& fold) {
    const T neutral = fold.template identity<T>();
    for (T a : law_samples<T>())
        if (fold.fold(neutral, a) != a || fold.fold(a, neutral) != a) return false;
    // Zeros of both signs count as equal here: 0 + -0 is +0.
    const auto stays = [](T a, T folded) { return a == a ? folded == a : folded != folded; };
    for (T a : law_special_samples<T>())
        if (!stays(a, fold.fold(neutral, a)) || !stays(a, fold.fold(a, neutral))) return false;
    return true;
}

template <Element T, class Fold>
bool is_associative(const Fold& fold, const std::vector<T>& samples) {
    for (T a : samples)
        for (T b : samples)
            for (T c : samples)
                if (!is_same_value(fold.fold(fold.fold(a, b), c), fold.fold(a, fold.fold(b, c)))) return false;
    return true;
}

template <Element T, class Fold>
bool commutes(const Fold& fold, const std::vector<T>& samples) {
    for (T a : samples)
        for (T b : samples)
            if (!is_same_value(fold.fold(a, b), fold.fold(b, a))) return false;
    return true;
}

template <Element T, class Fold>
bool adds(const Fold& fold) {
    if constexpr (AddingAggregator<Fold>)
        for (T a : law_samples<T>())
            for (T b : law_samples<T>())
                if (fold.fold(a, b) != a + b) return false;
    return true;
}

template <Element T, class Fold>
bool finish_changes_nothing(const Fold& fold) {
    std::vector<T> values = law_samples<T>();
    fold.finish(std::span<T>(values), 3.0);
    return values == law_samples<T>();
}

}  // namespace detail

/// Checks an aggregator against the laws of the concept, on elements of type T.
///
/// `visit(const char* name, const law_outcome&)` is called once per law. A flag may promise less than what holds.
template <Element T, Aggregator<T> Fold, class Visit>
void for_each_aggregator_law(const Fold& fold, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(Fold::name) + ": " + otherwise});
    };
    law("the identity is neutral", detail::identity_is_neutral<T>(fold), "fold(identity, x) is not always x");
    const std::vector<T> usual = detail::law_samples<T>(), special = detail::law_special_samples<T>();
    law("a fold is associative", detail::is_associative<T>(fold, usual),
        "fold(fold(a, b), c) is not fold(a, fold(b, c))");
    law("a fold commutes where it says so", !Fold::is_commutative || detail::commutes<T>(fold, usual),
        "is_commutative is true, but fold(a, b) is not always fold(b, a)");
    law("a fold is associative with NaN, infinities and zeros of both signs", detail::is_associative<T>(fold, special),
        "fold(fold(a, b), c) is not fold(a, fold(b, c)) where one is a NaN, an infinity or a zero: the result of a "
        "collective would depend on the topology");
    law("a fold commutes with NaN, infinities and zeros of both signs",
        !Fold::is_commutative || detail::commutes<T>(fold, special),
        "is_commutative is true, but fold(a, b) is not fold(b, a) where one is a NaN, an infinity or a zero");
    law("a fold adds where it says so", detail::adds<T>(fold),
        "is_addition is true, but fold(a, b) is not always a + b");
    law("a trivial finish changes nothing", !Fold::finish_is_trivial || detail::finish_changes_nothing<T>(fold),
        "finish_is_trivial is true, but finish changes values");
}

}}}  // namespace rill::RILL_ABI::testing
