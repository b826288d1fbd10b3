#pragma once

#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace train {

/// One exchange for so many steps: after the last of them.
struct every {
    std::uint64_t steps = 1;

    static constexpr const char* name = "every";

    /// Whether models are exchanged in this step, from 0.
    bool exchanges(std::uint64_t step) const {
        rill::detail::require_option(steps > 0, "train::every: steps", steps, "at least 1");
        return (step + 1) % steps == 0;
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("steps", steps);
    }
    friend constexpr bool operator==(const every&, const every&) = default;
};

}}}  // namespace rill::RILL_ABI::train
