#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/concept/aggregator.hpp>

#include <concepts>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The sum of the contributions divided by the sum of their weights; zero if no rank contributed. Floating-point
/// elements only: an integer mean would lose its remainder silently. Models `Aggregator`.
struct mean {
    using folds_as = sum;
    static constexpr const char* name = "mean";
    static constexpr bool is_commutative = true;
    static constexpr bool is_addition = true;
    static constexpr bool finish_is_trivial = false;

    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return sum::fold(a, b);
    }
    template <std::floating_point T>
    static constexpr void finish(std::span<T> values, double weight) noexcept {
        if (weight == 0) return;
        const T divisor = static_cast<T>(weight);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] /= divisor;
    }

    friend constexpr bool operator==(mean, mean) = default;
};
static_assert(Aggregator<mean, float>);

}}}  // namespace rill::RILL_ABI::aggregate
