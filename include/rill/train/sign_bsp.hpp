#pragma once

#include <rill/aggregate/sign_of_sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/own_values.hpp>
#include <rill/compress/signs.hpp>
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

/// A `sign_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_sign_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_sign_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_sign_bsp::lockstep(net, policy, options),
          policy_(policy),
          codec_(votes{}.template bind<T>(dimension)),
          optimizer_(policy.optimizer.template bind<T>(dimension)) {}

    auto& state() { return optimizer_; }
    const auto& state() const { return optimizer_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            return all_reduce(this->workers(), gradient, gradient, codec_, aggregate::sign_of_sum{}, own);
        };
        return this->step_with(number, gradient, compute, exchange,
                               [&] { optimizer_.step(parameters, std::span<const T>(gradient), rate); });
    }

  private:
    using signs = compress::own_values<compress::signs>;
    using votes = compress::encoded<compress::keep_all, signs, compress::raw_indices, signs>;

    Policy policy_;
    decltype(votes{}.template bind<T>(std::size_t{})) codec_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
};

/// Bulk-synchronous descent by majority vote: each rank votes with the signs of its gradient, and every parameter
/// follows the sign that most ranks vote for, +1 or -1. A gradient of 0 votes +1, and so does a tie.
///
/// Every coordinate moves by the rate in each step, so a suitable rate is far smaller than for `bsp`. One rank has one
/// vote in each coordinate, however large its gradient is. Models `Strategy`. Cost per step: one dense all-reduce of
/// the parameters' size over `topology`, which needs a copy phase. Memory: the optimizer's. Errors: `bind` throws
/// `mismatch` on all ranks if one has another optimizer or rate (`lockstep`). Source: Bernstein et al., signSGD, ICML
/// 2018, Algorithm 1 with majority vote.
template <Topology Shape, Optimizer Descent, RateSchedule Rate>
struct sign_bsp {
    static constexpr const char* name = "sign_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;

    Shape topology{};
    Descent optimizer{};
    Rate rate{};

    template <std::floating_point T = float, class Net>
    bound_sign_bsp<Net, sign_bsp, T> bind(Net& net, std::span<const layer> layers,
                                          const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const sign_bsp&, const sign_bsp&) = default;
};

template <class S, class D, class R>
sign_bsp(S, D, R) -> sign_bsp<S, D, R>;

}}}  // namespace rill::RILL_ABI::train
