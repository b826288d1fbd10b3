#pragma once

#include <rill/concept/objective.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/receipt.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/train/checkpoint.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How the gradients of all ranks become one step: a value with a `topology` that binds to a number of parameters.
template <class S, class T = float>
concept Strategy = std::regular<S> && Topology<decltype(S::topology)> && requires(const S& policy) {
    { policy.template bind<T>(std::size_t{}) } -> std::copyable;
    { policy.template bind<T>(std::size_t{}) } -> Persistent;
};

/// A strategy that exchanges the gradient layer by layer while the objective computes: it binds to the model's layers.
template <class S, class T = float>
concept LayeredStrategy =
    std::regular<S> && Topology<decltype(S::topology)> && requires(const S& policy, std::span<const layer> layers) {
        { policy.template bind<T>(layers) } -> std::copyable;
        { policy.template bind<T>(layers) } -> Persistent;
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

/// A layered strategy bound to one worker.
///
/// `begin(workers, gradient)` makes the exchange of one step. `ready(layer)` is called once for each layer, when its
/// part of the gradient is final: it belongs to the exchange from then on. `finish(parameters, number)`, collective,
/// waits for all and moves the parameters, with the promises of `BoundStrategy::step`; where this rank's gradient is
/// not finite it has contributed with weight 0, and `invalid()` then tells the first such coordinate. `fingerprint()`
/// is of what must be the same on all ranks, besides the calls.
template <class B, class Group, class T>
concept BoundLayeredStrategy =
    std::copyable<B> && Persistent<B> &&
    requires(B& bound, decltype(std::declval<B&>().begin(std::declval<Group&>(), std::span<T>()))& exchange,
             std::span<T> parameters, std::uint64_t number) {
        { bound.fingerprint() } -> std::same_as<std::uint64_t>;
        { exchange.ready(std::size_t{}) };
        { exchange.finish(parameters, number) } -> std::same_as<receipt>;
        { exchange.invalid() } -> std::same_as<std::optional<std::size_t>>;
    };

}}}  // namespace rill::RILL_ABI::train
