#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A policy that binds to a number of parameters and then moves them along a gradient, in place: the same bits on all
/// ranks for the same calls.
template <class O, class T = float>
concept Optimizer = std::regular<O> && std::floating_point<T> &&
                    requires(const O& policy, decltype(std::declval<const O&>().template bind<T>(std::size_t{}))& bound,
                             std::span<T> parameters, std::span<const T> gradient, double rate) {
                        { policy.template bind<T>(std::size_t{}) } -> std::copyable;
                        { bound.step(parameters, gradient, rate) };
                    };

}}}  // namespace rill::RILL_ABI::train
