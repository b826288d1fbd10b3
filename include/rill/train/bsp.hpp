#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/strategy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `bsp` bound to one worker.
template <class Policy, std::floating_point T>
class bound_bsp {
  public:
    bound_bsp(const Policy& policy, std::size_t dimension)
        : policy_(policy), optimizer_(policy.optimizer.template bind<T>(dimension)) {}

    template <class Group>
    receipt step(Group& workers, std::span<T> parameters, std::span<T> gradient, std::uint64_t number,
                 const contribution& own) {
        if (own.weight > 0) policy_.clip.apply(gradient);
        const receipt done = all_reduce(workers, gradient, gradient, aggregate::mean{}, own);
        [[maybe_unused]] const auto updating = named_span(workers.net(), "update");
        if (done.contributors == workers.size())
            optimizer_.step(parameters, std::span<const T>(gradient), policy_.rate.rate(number));
        return done;
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        optimizer_.save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        optimizer_.restore(in, prefix);
    }

  private:
    Policy policy_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
};

/// Bulk-synchronous data-parallel descent: each step follows the mean of all ranks' gradients, sent in full.
///
/// Cost per step: one dense all-reduce of the parameters' size over `topology`. Memory: the optimizer's.
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct bsp {
    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float>
    bound_bsp<bsp, T> bind(std::size_t dimension) const {
        return {*this, dimension};
    }
    friend constexpr bool operator==(const bsp&, const bsp&) = default;
};

template <class S, class D, class R>
bsp(S, D, R) -> bsp<S, D, R>;
template <class S, class D, class R, class C>
bsp(S, D, R, C) -> bsp<S, D, R, C>;

}}}  // namespace rill::RILL_ABI::train
