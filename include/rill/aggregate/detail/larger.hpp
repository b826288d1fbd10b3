// The fold of `max`; `min` applies it to negated values.
#pragma once

#include <rill/core/config.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// IEEE 754-2019 `maximum`: +0 is larger than −0, a NaN larger than every number. The result of two NaNs is the bitwise
/// or of both, so that its bits do not depend on the order.
///
/// It has no branch and uses only comparisons that vector units have. For ordered values the two selections differ only
/// if one is +0 and the other −0.
template <std::floating_point T>
constexpr T larger(T a, T b) noexcept {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto bits = [](T x) { return std::bit_cast<word>(x); };
    const word ordered = bits(a < b ? b : a) & bits(b < a ? a : b);
    // NOLINTNEXTLINE(misc-redundant-expression): false of a NaN
    return std::bit_cast<T>(ordered | bits(a == a ? T{0} : a) | bits(b == b ? T{0} : b));
}

}}}  // namespace rill::RILL_ABI::detail
