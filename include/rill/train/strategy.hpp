#pragma once

#include <rill/collective/tally.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/receipt.hpp>
#include <rill/train/checkpoint.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI::train {

/// How the gradients of all ranks become one step: a value with a `topology` that binds to a number of parameters.
template <class S, class T = float>
concept Strategy = std::regular<S> && Topology<decltype(S::topology)> && requires(const S& policy) {
    { policy.template bind<T>(std::size_t{}) } -> std::copyable;
    { policy.template bind<T>(std::size_t{}) } -> Persistent;
};

/// A strategy bound to one worker.
///
/// `step(workers, parameters, gradient, number, own)` is collective. It exchanges the gradients, of which this rank's
/// is lost, and moves the parameters, by the same bits on all ranks. Where a rank contributes with weight 0 the receipt
/// lists fewer contributors than ranks: then no rank has moved, and nothing that was to be sent is lost.
/// What it saves and restores is all that the next step depends on, besides its arguments and the group.
template <class B, class Group, class T>
concept BoundStrategy = std::copyable<B> && Persistent<B> &&
                        requires(B& bound, Group& workers, std::span<T> parameters, std::span<T> gradient,
                                 std::uint64_t number, const contribution& own) {
                            { bound.step(workers, parameters, gradient, number, own) } -> std::same_as<receipt>;
                        };

}  // namespace rill::inline RILL_ABI::train
