#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>

#include <concepts>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The policy that says whom the root of rounds asks for a contribution, round by round. All others get no message of
/// that round.
///
/// - `choose(size, key, places)` writes into `places`, ascending, the places among `0 … size-1` of those that are
///   asked: at least one, if there is any. `key` is the round's own; equal arguments give equal places. It reuses the
///   memory of `places`.
/// - Optional: `require_options(size, rank)` throws `contract_violation` unless the options suit so many places; `rank`
///   is the caller's, for the message.
template <class P>
concept Participation =
    Regular<P> && requires(const P& participation, int size, random_key key, std::vector<int>& places) {
        { participation.choose(size, key, places) };
        { P::name } -> std::convertible_to<const char*>;
    };

}}  // namespace rill::RILL_ABI
