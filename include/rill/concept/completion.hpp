#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// How far a gather has come.
struct gathering {
    int expected = 0;         ///< contributions that may come: one from each child
    std::span<const int> in;  ///< which have come: numbers of children, ascending
    bool time_is_up = false;  ///< since the round began more than the completion's `patience` has passed

    int missing() const { return expected - static_cast<int>(in.size()); }
};

/// Says when a gather has enough: the first of the straggler policies. Each parent of a tree asks it of its own
/// children.
///
/// `is_complete(g)` depends on `g` alone, holds when nothing is missing, and goes on to hold when more comes.
/// `patience(height)`: how long a rank that stands `height` edges above its deepest leaf waits before it says that time
/// is up; `endless_patience` for ever.
///
/// An optional `require_options(most_children, rank)` throws `contract_violation` where an option has a value that
/// makes no sense in a tree whose ranks have at most so many children; it is called when rounds are made.
template <class C>
concept Completion = std::regular<C> && requires(const C& completion, const gathering& g, int height) {
    { completion.is_complete(g) } -> std::same_as<bool>;
    { completion.patience(height) } -> std::same_as<duration>;
    { C::name } -> std::convertible_to<const char*>;
};

/// Of a completion that does not look at the clock.
inline constexpr duration endless_patience{std::numeric_limits<std::int64_t>::max()};

}}  // namespace rill::RILL_ABI
