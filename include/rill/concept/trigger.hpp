#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Says who starts a round that all then join.
///
/// `starts(ready, size, key)`: whether the ranks that have nothing left to do, `ready` (ascending), among `size` are
/// enough. `key` is the round's own and the same on all ranks, for triggers that draw whom they ask. It goes on to hold
/// when more are ready, and holds when all are.
template <class T>
concept Trigger =
    std::regular<T> && requires(const T& trigger, std::span<const rank_t> ready, int size, random_key key) {
        { trigger.starts(ready, size, key) } -> std::same_as<bool>;
        { T::name } -> std::convertible_to<const char*>;
    };

}}  // namespace rill::RILL_ABI
