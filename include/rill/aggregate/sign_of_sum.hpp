#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/concept/aggregator.hpp>

#include <cmath>
#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The sign of the sum of the contributions, +1 or -1: the majority vote, if each rank contributes signs.
///
/// A sum of 0 (a tie, of zeros of both signs too, or no contribution) gives +1. A NaN stays a NaN, so that no rank
/// hides that another one's gradient has become NaN. The owner of a part takes the signs, so signs are what travels in
/// the copy phase. Models `Aggregator` and `OwnerFinishingAggregator`. Determinism: sums of signs are exact, so the
/// result of a vote has the same bits over every topology; weights have no part in it. Source: Bernstein et al.,
/// signSGD, ICML 2018.
struct sign_of_sum {
    static constexpr const char* name = "sign_of_sum";
    static constexpr bool is_commutative = true;
    static constexpr bool is_addition = true;
    static constexpr bool finish_is_trivial = false;
    static constexpr bool finishes_at_owners = true;

    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return sum::fold(a, b);
    }
    template <std::floating_point T>
    static constexpr void finish(std::span<T> values, double) noexcept {
        for (T& value : values)
            if (!std::isnan(value)) value = value < 0 ? T{-1} : T{1};
    }

    friend constexpr bool operator==(sign_of_sum, sign_of_sum) = default;
};
static_assert(Aggregator<sign_of_sum, float>);
static_assert(OwnerFinishingAggregator<sign_of_sum>);

}}}  // namespace rill::RILL_ABI::aggregate
