#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>

#include <concepts>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// The straggler policy that says how old a contribution may be, in rounds, and when a fast rank must wait for a slow
/// one.
///
/// `accepts(age)`: whether a contribution that comes `age` rounds late still counts; age 0 always does.
/// `may_lead(lag)`: whether a round may end while a rank is still at work on a round that began `lag` rounds earlier.
/// If it may not, the round waits for that rank, and its contribution counts at any age. So nothing is ever dropped if
/// `accepts` holds for each lag for which `may_lead` holds, and for the next one.
///
/// Optional: `own_round_only`, which says to the compiler that no contribution counts in another round than its own.
template <class S>
concept Staleness = Regular<S> && requires(const S& staleness, std::uint32_t rounds) {
    { staleness.accepts(rounds) } -> std::same_as<bool>;
    { staleness.may_lead(rounds) } -> std::same_as<bool>;
    { S::name } -> std::convertible_to<const char*>;
};

/// A staleness by which no contribution counts in another round than its own: `accepts` holds for age 0 alone, and
/// `may_lead` always. Codecs that choose other entries in each round need that.
template <class S>
concept OwnRoundStaleness = Staleness<S> && S::own_round_only;

}}  // namespace rill::RILL_ABI
