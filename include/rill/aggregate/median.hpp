#pragma once

#include <rill/aggregate/detail/ascending.hpp>
#include <rill/concept/joint_aggregator.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The median of the contributions, at each coordinate; the middle between the two middle ones if their number is even,
/// of integers rounded towards the smaller.
///
/// Fewer than half of the ranks cannot move it out of the range of the others. −0 < +0; a NaN counts as larger than
/// every number, so it does not spoil the result unless it is a middle value. A rank of weight 0 is not counted; other
/// weights have no part in it. Models `JointAggregator`. Cost: O(P) for each coordinate. Source: Yin et al.,
/// Byzantine-robust distributed learning, ICML 2018.
struct median {
    static constexpr const char* name = "median";

    static constexpr int least_ranks() { return 1; }

    template <Element T>
    static T combine(std::span<T> values) noexcept {
        T* const begin = values.data();
        T* const upper = begin + values.size() / 2;
        std::nth_element(begin, upper, begin + values.size(), rill::detail::ascending{});
        if (values.size() % 2 != 0) return sound(*upper);
        return sound(std::midpoint(*std::max_element(begin, upper, rill::detail::ascending{}), *upper));
    }

    friend constexpr bool operator==(median, median) = default;

  private:
    /// All NaNs are one, so that the bits do not depend on which rank's is the middle one.
    template <class T>
    static T sound(T value) {
        if constexpr (std::floating_point<T>)
            if (std::isnan(value)) return std::numeric_limits<T>::quiet_NaN();
        return value;
    }
};
static_assert(JointAggregator<median, float>);

}}}  // namespace rill::RILL_ABI::aggregate
