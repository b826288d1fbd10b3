#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// How the result of a round moves a model: a policy that binds to a number of parameters.
///
/// `apply(model, fold, weight, round)` moves `model` in place by `fold`: what `fold_type`, an aggregator, made of the
/// contributions, whose weights add up to `weight` > 0. `round` counts from 0. The same calls give the same bits, so
/// that ranks which start with equal models keep equal models. A bound update with state is copyable and also has
/// `save(out, prefix)` and `restore(in, prefix)`, as optimizers have. Ranks compare the policy's `fingerprint`, if it
/// has a name.
///
/// Optional: `apply(model, stream_view, weight, round)`, a fold that is 0 where the stream has no entry.
template <class U, class T>
concept Update = std::copyable<U> && requires(const U& policy, decltype(policy.template bind<T>(std::size_t{}))& bound,
                                              std::span<T> model, std::span<const T> fold, std::uint64_t round) {
    typename U::fold_type;
    { bound.apply(model, fold, 1.0, round) };
};

/// How one push of one rank moves a model that servers hold: a policy that binds to a number of parameters.
///
/// `apply_of(rank, model, push, round)` moves `model` in place; `round` counts the pushes of all ranks, from 0. An
/// `Update` does so too: a push is the fold of one contribution of weight 1.
template <class U, class T>
concept RankedUpdate =
    std::copyable<U> && requires(const U& policy, decltype(policy.template bind<T>(std::size_t{}))& bound, rank_t rank,
                                 std::span<T> model, std::span<const T> push, std::uint64_t round) {
        { bound.apply_of(rank, model, push, round) };
    };

}}  // namespace rill::RILL_ABI
