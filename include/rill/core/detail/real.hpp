// Replaces <cmath>, whose inclusion would be a tenth of the cost of rill.hpp to a translation unit.
#pragma once

#include <rill/core/config.hpp>

#if !defined(__GNUC__)
#include <cmath>
#endif

namespace rill { inline namespace RILL_ABI { namespace detail {

constexpr bool is_finite(double x) { return x - x == 0; }

inline double square_root(double x) {
#if defined(__GNUC__)
    return __builtin_sqrt(x);
#else
    return std::sqrt(x);
#endif
}

inline double power(double x, double exponent) {
#if defined(__GNUC__)
    return __builtin_pow(x, exponent);
#else
    return std::pow(x, exponent);
#endif
}

inline double round_up(double x) {
#if defined(__GNUC__)
    return __builtin_ceil(x);
#else
    return std::ceil(x);
#endif
}

}}}  // namespace rill::RILL_ABI::detail
