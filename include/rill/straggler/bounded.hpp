#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace straggler {

/// A late contribution still counts, up to `rounds` rounds late. Ranks that are further ahead wait, so that nothing is
/// ever dropped. With 0, everybody waits for everybody. Models `Staleness`.
///
/// - In `parameter_server` it counts clocks, each rank's own pushes: a rank that has pushed c times reads once all
///   others have pushed c - `rounds` times. This is stale synchronous parallel (Ho et al. 2013).
/// - In `rounds` it counts the root's rounds, and holds between the root and its children. Deeper in a tree, ranks with
///   children may themselves have missed rounds: what a rank h edges from the root sends reaches its parent at most
///   h (rounds - 1) + 1 rounds late.
/// - In `partial_all_reduce` it counts the rounds that have moved the model since it was pulled; what is older is
///   dropped. A rank waits for the next round once it has pushed `rounds` gradients at one model, with 0 one gradient.
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
