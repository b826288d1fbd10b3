// The order of values in which `median` and `trimmed_mean` see the contributions to a coordinate.
#pragma once

#include <rill/core/config.hpp>

#include <cmath>
#include <concepts>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Ascending order, in which −0 < +0, and a NaN is larger than every number.
struct ascending {
    template <class T>
    bool operator()(T a, T b) const noexcept {
        if constexpr (std::floating_point<T>) {
            if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
            if (a == b) return std::signbit(a) && !std::signbit(b);
        }
        return a < b;
    }
};

}}}  // namespace rill::RILL_ABI::detail
