#pragma once

#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>

#include <span>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// The first rank that is ready starts the round. Models `Trigger`.
struct solo {
    static constexpr const char* name = "solo";

    static constexpr bool asks(rank_t, int, random_key) { return true; }
    static bool starts(std::span<const rank_t> ready, int, random_key) { return !ready.empty(); }
    friend constexpr bool operator==(solo, solo) = default;
};

static_assert(Trigger<solo>);

}}}  // namespace rill::RILL_ABI::straggler
