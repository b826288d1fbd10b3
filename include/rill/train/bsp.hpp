#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/lockstep.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/strategy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_bsp::lockstep(net, policy, options),
          policy_(policy),
          optimizer_(policy.optimizer.template bind<T>(dimension)) {}

    auto& state() { return optimizer_; }
    const auto& state() const { return optimizer_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            if (own.weight > 0) policy_.clip.apply(gradient);
            return all_reduce(this->workers(), gradient, gradient, aggregate::mean{}, own);
        };
        return this->step_with(number, gradient, compute, exchange,
                               [&] { optimizer_.step(parameters, std::span<const T>(gradient), rate); });
    }

  private:
    Policy policy_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
};

/// Bulk-synchronous data-parallel descent: each step follows the mean of all ranks' gradients, sent in full.
///
/// Models `Strategy`. Cost per step: one dense all-reduce of the parameters' size over `topology`. Memory: the
/// optimizer's. Errors: `bind` throws `mismatch` on all ranks if one has another optimizer, rate or clipping
/// (`lockstep`).
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct bsp {
    static constexpr const char* name = "bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;

    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float, class Net>
    bound_bsp<Net, bsp, T> bind(Net& net, std::span<const layer> layers, const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const bsp&, const bsp&) = default;
};

template <class S, class D, class R>
bsp(S, D, R) -> bsp<S, D, R>;
template <class S, class D, class R, class C>
bsp(S, D, R, C) -> bsp<S, D, R, C>;

}}}  // namespace rill::RILL_ABI::train
