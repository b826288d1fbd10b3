#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A late contribution goes into the current round, however late it is. No rank waits. Models `Staleness`.
struct unbounded {
    static constexpr const char* name = "unbounded";

    static constexpr bool accepts(std::uint32_t) { return true; }
    static constexpr bool may_lead(std::uint32_t) { return true; }
    friend constexpr bool operator==(unbounded, unbounded) = default;
};

static_assert(Staleness<unbounded>);

}}}  // namespace rill::RILL_ABI::straggler
