#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace train {

/// One exchange for so many steps, at least one: after the last of them.
struct every {
    std::uint64_t steps = 1;

    static constexpr const char* name = "every";

    /// Whether models are exchanged in this step, from 0.
    constexpr bool exchanges(std::uint64_t step) const { return (step + 1) % steps == 0; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("steps", steps);
    }
    friend constexpr bool operator==(const every&, const every&) = default;
};

}}}  // namespace rill::RILL_ABI::train
