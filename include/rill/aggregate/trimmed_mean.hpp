#pragma once

#include <rill/aggregate/detail/ascending.hpp>
#include <rill/concept/joint_aggregator.hpp>
#include <rill/core/option_range.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The mean of the contributions without the `trim` largest and the `trim` smallest, at each coordinate.
///
/// So `trim` ranks cannot move it out of the range of the others. The kept values are added in ascending order, in
/// double precision; a mean that rounding takes out of their range is the nearest of them. −0 < +0; a NaN counts as
/// larger than every number, so the result is a NaN only if more than `trim` ranks contribute one, or if infinities of
/// both signs are kept. A rank of weight 0 is not counted; other weights have no part in it. If so only 2 `trim` ranks
/// or fewer are left, the result is their median. A group of 2 `trim` ranks or fewer is refused. Floating-point
/// elements only. Models `JointAggregator`. Cost: O(P log P) for each coordinate. Source: Yin et al., Byzantine-robust
/// distributed learning, ICML 2018.
struct trimmed_mean {
    int trim = 1;

    static constexpr const char* name = "trimmed_mean";

    constexpr int least_ranks() const {
        constexpr int most = std::numeric_limits<int>::max() / 2 - 1;
        return 2 * rill::detail::require_option(0 <= trim && trim <= most, "aggregate::trimmed_mean: trim", trim,
                                                "at least 0 and less than half of the number of ranks") +
               1;
    }

    template <std::floating_point T>
    T combine(std::span<T> values) const noexcept {
        std::sort(values.data(), values.data() + values.size(), rill::detail::ascending{});
        const std::size_t cut = std::min(static_cast<std::size_t>(trim), (values.size() - 1) / 2);
        const std::span<const T> kept = values.subspan(cut, values.size() - 2 * cut);
        auto sum = static_cast<double>(kept.front());
        for (const T value : kept.subspan(1)) sum += static_cast<double>(value);
        const double mean = sum / static_cast<double>(kept.size());
        if (std::isnan(mean)) return std::numeric_limits<T>::quiet_NaN();
        // The sum of doubles may be rounded, or overflow, beyond the kept values.
        return std::clamp(static_cast<T>(mean), kept.front(), kept.back());
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("trim", trim);
    }
    friend constexpr bool operator==(trimmed_mean, trimmed_mean) = default;
};
static_assert(JointAggregator<trimmed_mean, float>);

}}}  // namespace rill::RILL_ABI::aggregate
