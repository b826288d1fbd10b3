#pragma once

#include <rill/concept/aggregator.hpp>

#include <limits>
#include <span>

namespace rill::inline RILL_ABI::aggregate {

/// The smallest contribution; ties and NaN as in `max`.
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
        return b < a ? b : a;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(min, min) = default;
};
static_assert(Aggregator<min, float>);

}  // namespace rill::inline RILL_ABI::aggregate
