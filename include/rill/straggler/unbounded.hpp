#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// What comes late goes into the round under way, however late; nobody waits.
struct unbounded {
    static constexpr const char* name = "unbounded";

    static constexpr bool accepts(std::uint32_t) { return true; }
    static constexpr bool may_lead(std::uint32_t) { return true; }
    friend constexpr bool operator==(unbounded, unbounded) = default;
};

static_assert(Staleness<unbounded>);

}}}  // namespace rill::RILL_ABI::straggler
