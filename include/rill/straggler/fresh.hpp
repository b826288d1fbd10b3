#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// Only contributions to the current round count. Late ones are dropped, and no rank waits for them. Models
/// `OwnRoundStaleness`.
struct fresh {
    static constexpr const char* name = "fresh";
    static constexpr bool own_round_only = true;

    static constexpr bool accepts(std::uint32_t age) { return age == 0; }
    static constexpr bool may_lead(std::uint32_t) { return true; }
    friend constexpr bool operator==(fresh, fresh) = default;
};

static_assert(OwnRoundStaleness<fresh>);

}}}  // namespace rill::RILL_ABI::straggler
