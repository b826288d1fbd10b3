#pragma once

#include <rill/aggregate/detail/larger.hpp>
#include <rill/concept/aggregator.hpp>

#include <concepts>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The smallest contribution, by `minimum` of IEEE 754-2019: −0 < +0, and the result is a NaN if a rank contributes a
/// NaN, as in `max`. Models `Aggregator`. Determinism: same bits in any order of ranks.
struct min {
    static constexpr const char* name = "min";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        if constexpr (std::numeric_limits<T>::has_infinity)
            return std::numeric_limits<T>::infinity();
        else
            return std::numeric_limits<T>::max();
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        if constexpr (std::floating_point<T>)
            return -detail::larger(-a, -b);
        else
            return b < a ? b : a;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(min, min) = default;
};
static_assert(Aggregator<min, float>);

}}}  // namespace rill::RILL_ABI::aggregate
