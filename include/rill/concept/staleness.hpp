#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// Says how old a contribution may be, in rounds, and when a fast rank must wait for a slow one.
///
/// `accepts(age)`: whether a contribution that comes `age` rounds late still counts; age 0 always does.
/// `may_lead(lag)`: whether a round may end while a rank is still at work on one that began `lag` rounds earlier. What
/// is waited for because it does not hold counts, however old; so nothing is ever dropped where each lag of which it
/// holds, and the next one, are accepted.
template <class S>
concept Staleness = std::regular<S> && requires(const S& staleness, std::uint32_t rounds) {
    { staleness.accepts(rounds) } -> std::same_as<bool>;
    { staleness.may_lead(rounds) } -> std::same_as<bool>;
    { S::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
