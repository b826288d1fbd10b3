#pragma once

#include <rill/core/config.hpp>

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
/// `save(out, prefix)` and `restore(in, prefix)`, as optimizers have.
template <class U, class T>
concept Update = std::copyable<U> && requires(const U& policy, decltype(policy.template bind<T>(std::size_t{}))& bound,
                                              std::span<T> model, std::span<const T> fold, std::uint64_t round) {
    typename U::fold_type;
    { bound.apply(model, fold, 1.0, round) };
};

}}  // namespace rill::RILL_ABI
