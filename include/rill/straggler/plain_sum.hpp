#pragma once

#include <rill/concept/backlog.hpp>
#include <rill/core/config.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Each gradient counts once: their sum, with their number as the weight. Models `Backlog`.
struct plain_sum {
    static constexpr const char* name = "plain_sum";

    static constexpr double share(std::size_t, std::size_t) { return 1; }
    static constexpr double weight(std::size_t count) { return static_cast<double>(count); }
    friend constexpr bool operator==(plain_sum, plain_sum) = default;
};

static_assert(Backlog<plain_sum>);

}}}  // namespace rill::RILL_ABI::straggler
