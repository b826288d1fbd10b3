#pragma once

#include <rill/concept/aggregator.hpp>

#include <limits>
#include <span>

namespace rill::inline RILL_ABI::aggregate {

/// The largest contribution. Of equal ones (+0 and −0) the lower rank's; a NaN never replaces what is there.
struct max {
    static constexpr const char* name = "max";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        if constexpr (std::numeric_limits<T>::has_infinity)
            return -std::numeric_limits<T>::infinity();
        else
            return std::numeric_limits<T>::lowest();
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return a < b ? b : a;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(max, max) = default;
};
static_assert(Aggregator<max, float>);

}  // namespace rill::inline RILL_ABI::aggregate
