#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// What finds a matching of a graph with as many pairs as there can be.
///
/// `match(ranks, edges)`: the partner of each of the ranks `0 … ranks-1`, or `no_rank`; partners share an edge and name
/// each other. A pure function: equal graphs, with edges in equal order, give equal matchings. It has no state.
template <class M>
concept Matcher =
    Regular<M> && std::is_empty_v<M> && requires(int ranks, std::span<const std::array<rank_t, 2>> edges) {
        { M::name } -> std::convertible_to<const char*>;
        { M::match(ranks, edges) } -> std::same_as<std::vector<rank_t>>;
    };

}}  // namespace rill::RILL_ABI
