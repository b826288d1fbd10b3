#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/contract.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/rooted.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/strategy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

template <class Policy, std::floating_point T>
using bound_optimizer = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));

template <class Net, class Policy>
using partial_rounds = rounds<group_on<Net, decltype(Policy::topology)>, decltype(Policy::topology),
                              decltype(Policy::completion), decltype(Policy::staleness)>;

}  // namespace detail

/// A `partial_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_partial_bsp : public rooted<Net, decltype(Policy::topology), detail::partial_rounds<Net, Policy>,
                                        detail::bound_optimizer<Policy, T>> {
    using steps_type = detail::partial_rounds<Net, Policy>;

  public:
    bound_partial_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_partial_bsp::rooted(
              net, policy.topology, options,
              [&](auto& workers) { return steps_type(workers, policy.topology, policy.completion, policy.staleness); },
              policy.optimizer.template bind<T>(dimension)),
          policy_(policy) {
        detail::require_clipping(policy.clip);
        const gathering nobody{.expected = policy.topology.children(net.size(), 0), .in = {}};
        RILL_EXPECTS(policy.root_contributes || !policy.completion.is_complete(nobody),
                     "train::partial_bsp: a round is complete before any child of rank 0 has contributed, and rank 0 "
                     "computes nothing, so nothing would be trained; let the completion wait for a child, or set "
                     "root_contributes");
    }

    bool contributes() const { return policy_.root_contributes || !this->is_root(); }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t, Compute&& compute) {
        const auto reduce = [&](bool bad) {
            const bool counts = contributes() && !bad;
            if (counts) policy_.clip.apply(gradient);
            return this->steps().reduce(gradient, gradient, aggregate::mean{},
                                        contribution{.weight = counts ? 1.0 : 0.0});
        };
        const auto move = [&](const step_record&, double rate) {
            this->state().step(parameters, std::span<const T>(gradient), rate);
        };
        return this->step_with(policy_.rate, parameters, gradient, contributes(), compute, reduce, move);
    }

  private:
    Policy policy_;
};

/// Descent along the mean of the gradients that come in time: the root waits until `completion` has enough of them (the
/// fastest k, all but s, those before a deadline), and late ones are dropped or count later (`staleness`).
///
/// Models `Strategy`. The root, rank 0, moves the parameters and sends them to all; replicas are not equal: a late rank
/// goes on from the newest ones. By default the root is a master that computes nothing; then
/// `bind` throws `contract_violation` if `completion` waits for none of its children (or it has none). A gradient that
/// is not finite is left out. `rounds` says what is guaranteed when ranks die. Checkpoints: all ranks save, and
/// restore, between the same two steps. What is late then and counts later by `staleness` is of the parameters before.
/// Cost per step: the parameters down and a gradient up on each edge of `topology`. Memory: the optimizer's at each
/// rank, and that of `rounds`.
template <TreeTopology Tree, Completion Enough, Optimizer Descent, RateSchedule Rate, Staleness Age = straggler::fresh,
          Clipping Clip = no_clip>
struct partial_bsp {
    static constexpr const char* name = "partial_bsp";
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    Tree topology{};
    Enough completion{};
    Descent optimizer{};
    Rate rate{};
    Age staleness{};
    Clip clip{};  ///< of each rank's own gradient
    bool root_contributes = false;

    template <std::floating_point T = float, class Net>
    bound_partial_bsp<Net, partial_bsp, T> bind(Net& net, std::span<const layer> layers,
                                                const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const partial_bsp&, const partial_bsp&) = default;
};

template <class S, class E, class D, class R>
partial_bsp(S, E, D, R) -> partial_bsp<S, E, D, R>;
template <class S, class E, class D, class R, class A>
partial_bsp(S, E, D, R, A) -> partial_bsp<S, E, D, R, A>;
template <class S, class E, class D, class R, class A, class C>
partial_bsp(S, E, D, R, A, C) -> partial_bsp<S, E, D, R, A, C>;
template <class S, class E, class D, class R, class A, class C>
partial_bsp(S, E, D, R, A, C, bool) -> partial_bsp<S, E, D, R, A, C>;

}}}  // namespace rill::RILL_ABI::train
