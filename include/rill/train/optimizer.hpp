#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/train/checkpoint.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A policy that binds to a number of parameters and then moves them along a gradient, in place.
///
/// `is_linear`: without weight decay, a step along `c·gradient` at rate 1 is one along `gradient` at rate c. Strategies
/// that send steps instead of gradients need it.
/// Laws (`testing::for_each_optimizer_law`): the same calls give the same bits; a copy goes on as its original; at
/// rate 0 nothing moves; an object that restores saved state goes on bit for bit, and a `restore` that throws changes
/// nothing; a `StreamOptimizer` moves along a stream as along the dense gradient, up to rounding.
template <class O, class T = float>
concept Optimizer = Regular<O> && std::floating_point<T> &&
                    requires(const O& policy, decltype(std::declval<const O&>().template bind<T>(std::size_t{}))& bound,
                             std::span<T> parameters, std::span<const T> gradient, double rate) {
                        { policy.template bind<T>(std::size_t{}) } -> std::copyable;
                        { policy.template bind<T>(std::size_t{}) } -> Persistent;
                        { bound.step(parameters, gradient, rate) };
                        requires std::same_as<decltype(O::is_linear), const bool>;
                    };

/// A bound optimizer that also takes a gradient as a `stream_view`, without a value for each parameter.
template <class Bound, class T, class View>
concept StreamOptimizer = requires(Bound& bound, std::span<T> parameters, const View& gradient, double rate) {
    bound.step(parameters, gradient, rate);
};

}}}  // namespace rill::RILL_ABI::train
