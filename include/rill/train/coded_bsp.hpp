#pragma once

#include <rill/concept/gradient_code.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/coded_reduce.hpp>
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

template <class Net, class Policy>
using coded_rounds =
    coded_reduce<group_on<Net, decltype(Policy::topology)>, decltype(Policy::topology), decltype(Policy::code)>;

}  // namespace detail

/// A `coded_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_coded_bsp
    : public rooted<Net, decltype(Policy::topology), detail::coded_rounds<Net, Policy>,
                    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}))> {
    using steps_type = detail::coded_rounds<Net, Policy>;

  public:
    bound_coded_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_coded_bsp::rooted(
              net, policy.topology, options,
              [&](auto& workers) { return steps_type(workers, policy.topology, policy.code, policy.options); },
              policy.optimizer.template bind<T>(dimension)),
          rate_(policy.rate) {}

    /// The root decodes and computes nothing.
    bool contributes() const { return !this->is_root(); }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t, Compute&& compute) {
        const auto reduce = [&](bool) { return this->steps().reduce(gradient, gradient); };
        const auto move = [&](step_record& record, double rate) {
            const auto bad = kernel::find_non_finite(std::span<const T>(gradient));
            if (bad)
                record.invalid.push_back({no_rank, *bad});
            else
                this->state().step(parameters, std::span<const T>(gradient), rate);
        };
        return this->step_with(rate_, parameters, gradient, contributes(), compute, reduce, move);
    }

  private:
    decltype(Policy::rate) rate_;
};

/// Descent along the whole gradient without the slowest ranks: each worker computes on its `coded_batch`, and parents
/// decode what is missing (CodedReduce; on a tree of depth 1, gradient coding).
///
/// Models `Strategy`. The root, rank 0, moves the parameters and sends them to all; replicas are not equal. A message
/// that holds a value that is not finite cannot be taken out of a decoded sum: the root then skips the step. Its record
/// tells so without naming a rank; that of the rank whose gradient it was names this rank. Records of others tell
/// nothing.
/// Cost per step: the parameters down and a gradient up on each edge of `topology`. Memory: the optimizer's at each
/// rank, and that of `coded_reduce`.
template <TreeTopology Tree, GradientCode Code, Optimizer Descent, RateSchedule Rate>
struct coded_bsp {
    static constexpr const char* name = "coded_bsp";
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    Tree topology;
    Code code;
    Descent optimizer{};
    Rate rate{};
    coded_options options{};

    template <std::floating_point T = float, class Net>
    bound_coded_bsp<Net, coded_bsp, T> bind(Net& net, std::span<const layer> layers,
                                            const group_options& group = {}) const {
        return {net, *this, dimension_of(layers), group};
    }
};

template <class S, class C, class D, class R>
coded_bsp(S, C, D, R) -> coded_bsp<S, C, D, R>;
template <class S, class C, class D, class R>
coded_bsp(S, C, D, R, coded_options) -> coded_bsp<S, C, D, R>;

}}}  // namespace rill::RILL_ABI::train
