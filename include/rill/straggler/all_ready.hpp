#pragma once

#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A round starts when all ranks are ready. Models `Trigger`.
struct all_ready {
    static constexpr const char* name = "all_ready";

    static constexpr bool asks(rank_t, int, random_key) { return true; }
    static bool starts(std::span<const rank_t> ready, int size, random_key) {
        return ready.size() == static_cast<std::size_t>(size);
    }
    friend constexpr bool operator==(all_ready, all_ready) = default;
};

static_assert(Trigger<all_ready>);

}}}  // namespace rill::RILL_ABI::straggler
