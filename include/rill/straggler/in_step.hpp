#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A late contribution goes into the next round, however late it is. A rank that is on time waits for its round. Models
/// `Staleness`. Source: eager-SGD (Li et al. 2020).
struct in_step {
    static constexpr const char* name = "in_step";

    static constexpr bool accepts(std::uint32_t) { return true; }
    static constexpr bool may_lead(std::uint32_t lag) { return lag == 0; }
    friend constexpr bool operator==(in_step, in_step) = default;
};

static_assert(Staleness<in_step>);

}}}  // namespace rill::RILL_ABI::straggler
