#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>

#include <concepts>
#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// The straggler policy that says how the gradients that have piled up on a rank become one contribution.
///
/// Of `count` gradients, the i-th oldest (from 0) is multiplied by `share(i, count)`, and their sum travels with the
/// weight `weight(count)`. The result of a round is the sum over all ranks, divided by the sum of their weights. Both
/// are finite and positive, the shares add up to the weight, and one gradient alone has share 1.
template <class B>
concept Backlog = Regular<B> && requires(const B& backlog, std::size_t i, std::size_t count) {
    { backlog.share(i, count) } -> std::same_as<double>;
    { backlog.weight(count) } -> std::same_as<double>;
    { B::name } -> std::convertible_to<const char*>;
};

}}  // namespace rill::RILL_ABI
