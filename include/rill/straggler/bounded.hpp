#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A late contribution goes into the current round, up to `rounds` rounds late. Ranks that are further ahead wait, so
/// that nothing is ever dropped. With 0, everybody waits for everybody. Models `Staleness`. Source: stale synchronous
/// parallel (Ho et al. 2013).
///
/// The bound holds between the root and its children. Deeper in a tree, ranks with children may themselves have missed
/// rounds: what a rank h edges from the root sends reaches its parent at most h (rounds - 1) + 1 rounds late.
struct bounded {
    std::uint32_t rounds = 1;

    static constexpr const char* name = "bounded";

    constexpr bool accepts(std::uint32_t age) const { return age <= rounds; }
    constexpr bool may_lead(std::uint32_t lag) const { return lag < rounds; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("rounds", rounds);
    }
    friend constexpr bool operator==(bounded, bounded) = default;
};

static_assert(Staleness<bounded>);

}}}  // namespace rill::RILL_ABI::straggler
