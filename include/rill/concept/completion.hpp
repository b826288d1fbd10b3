#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// The progress of a gather, in which a rank of a tree waits for the contributions of its children.
struct gathering {
    int expected = 0;         ///< how many contributions may come: one from each child
    std::span<const int> in;  ///< numbers of the children whose contributions have come, ascending
    bool time_is_up = false;  ///< the completion's `patience` has passed since the round began

    int missing() const { return expected - static_cast<int>(in.size()); }
};

/// The first of the straggler policies: says when a gather has enough contributions. Each parent of a tree applies it
/// to its own children.
///
/// `is_complete(g)` depends on `g` alone, is true when nothing is missing, and stays true when more contributions come.
/// `patience(height)` is how long a rank that stands `height` edges above its deepest leaf waits before `time_is_up`;
/// `endless_patience` means for ever.
template <class C>
concept Completion = Regular<C> && requires(const C& completion, const gathering& g, int height) {
    { completion.is_complete(g) } -> std::same_as<bool>;
    { completion.patience(height) } -> std::same_as<duration>;
    { C::name } -> std::convertible_to<const char*>;
};

/// A completion whose options do not fit every tree: `require_options(most_children, rank)` throws
/// `contract_violation`, of `rank`, if an option makes no sense in a tree whose ranks have at most `most_children`
/// children. It is called when rounds are constructed.
template <class C>
concept CheckedCompletion = Completion<C> && requires(const C& completion, int most_children, rank_t rank) {
    completion.require_options(most_children, rank);
};

/// The patience of a completion that does not look at the clock.
inline constexpr duration endless_patience{std::numeric_limits<std::int64_t>::max()};

}}  // namespace rill::RILL_ABI
