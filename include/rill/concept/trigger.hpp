#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// The straggler policy that says when a round starts, which all ranks then join.
///
/// Ranks are known by their places `0 … size-1` among those that take part. `key` is the round's own and the same on
/// all ranks, for triggers that draw ranks at random.
///
/// - `asks(rank, size, key)`: whether it counts that `rank` is ready. At least one rank is asked.
/// - `starts(ready, size, key)`: whether `ready` (ascending) are enough. The result depends only on ranks that are
///   asked, stays true when more ranks are ready, and is true when all are.
/// - Optional: `require_options(size, rank)` throws `contract_violation` unless the options suit so many ranks; `rank`
///   is the caller's, for the message.
///
/// What it means to be ready is the protocol's: in `rounds`, a rank that has nothing left to do; in
/// `partial_all_reduce`, a rank that has a contribution.
template <class T>
concept Trigger =
    Regular<T> && requires(const T& trigger, rank_t rank, std::span<const rank_t> ready, int size, random_key key) {
        { trigger.asks(rank, size, key) } -> std::same_as<bool>;
        { trigger.starts(ready, size, key) } -> std::same_as<bool>;
        { T::name } -> std::convertible_to<const char*>;
    };

}}  // namespace rill::RILL_ABI
