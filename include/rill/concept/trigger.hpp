#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// The straggler policy that says when a round starts, which all ranks then join.
///
/// `starts(ready, size, key)`: whether `ready`, the ranks that have nothing left to do (ascending), are enough out of
/// `size`. `key` is the round's own and the same on all ranks, for triggers that draw ranks at random. The result stays
/// true when more ranks are ready, and is true when all are.
template <class T>
concept Trigger =
    std::regular<T> && requires(const T& trigger, std::span<const rank_t> ready, int size, random_key key) {
        { trigger.starts(ready, size, key) } -> std::same_as<bool>;
        { T::name } -> std::convertible_to<const char*>;
    };

}}  // namespace rill::RILL_ABI
