#pragma once

#include <rill/concept/aggregator.hpp>

#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The sum of the contributions. Every partial sum of integers must be in the range of the type. Models `Aggregator`.
struct sum {
    static constexpr const char* name = "sum";
    static constexpr bool is_commutative = true;
    static constexpr bool is_addition = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return static_cast<T>(a + b);
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(sum, sum) = default;
};
static_assert(Aggregator<sum, float>);

}}}  // namespace rill::RILL_ABI::aggregate
