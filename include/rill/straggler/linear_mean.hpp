#pragma once

#include <rill/concept/backlog.hpp>
#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Each rank counts once, with the mean of its gradients, in which newer ones count more: the i-th oldest of n counts
/// `i / (1 + 2 + … + n)`. Models `Backlog`. Source: RNA (Yang et al. 2020), g' in section 3.3.
struct linear_mean {
    static constexpr const char* name = "linear_mean";

    static constexpr double share(std::size_t i, std::size_t count) {
        const auto n = static_cast<double>(count);
        return static_cast<double>(i + 1) / (n * (n + 1) / 2);
    }
    static constexpr double weight(std::size_t) { return 1; }
    friend constexpr bool operator==(linear_mean, linear_mean) = default;
};

static_assert(Backlog<linear_mean>);

}}}  // namespace rill::RILL_ABI::straggler
