#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `descent` bound to the parameters of one replica.
template <class Policy, std::floating_point T>
class bound_descent {
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));

  public:
    bound_descent(const Policy& policy, std::size_t dimension)
        : optimizer_(policy.optimizer.template bind<T>(dimension)),
          rate_(policy.rate),
          scales_by_weight_(policy.scales_by_weight) {}

    void apply(std::span<T> model, std::span<const T> fold, double weight, std::uint64_t round) {
        optimizer_.step(model, fold, scaled_rate(round, weight));
    }
    /// By a fold that is 0 where the stream has no entry.
    template <IndexType Index>
    void apply(std::span<T> model, const stream_view<T, Index>& fold, double weight, std::uint64_t round)
        requires StreamOptimizer<optimizer_type, T, stream_view<T, Index>>
    {
        optimizer_.step(model, fold, scaled_rate(round, weight));
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
    double scaled_rate(std::uint64_t round, double weight) const {
        return rate_at<T>(rate_, round) * (scales_by_weight_ ? weight : 1.0);
    }

    optimizer_type optimizer_;
    decltype(Policy::rate) rate_;
    bool scales_by_weight_;
};

/// Moves the model by a step of `optimizer` along the mean of the gradients, at the rate of the round times the weight
/// of all contributions: k gradients in one step move the model about as far as k steps of one gradient.
///
/// Models `Update`. Where all P ranks contribute with weight 1, a step is one of `bsp` at P times this rate. Memory:
/// that of the optimizer. Source: linear scaling of the rate (Goyal et al. 2017), as RNA uses it.
template <Optimizer Descent = sgd, RateSchedule Rate = constant_rate>
struct descent {
    static constexpr const char* name = "descent";

    using fold_type = aggregate::mean;

    Descent optimizer{};
    Rate rate{};
    bool scales_by_weight = true;  ///< else a step is one along the mean, however many contribute to it

    template <std::floating_point T>
    bound_descent<descent, T> bind(std::size_t dimension) const {
        return {*this, dimension};
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("optimizer", fingerprint_if_named(optimizer));
        visit("rate", fingerprint_if_named(rate));
        visit("scales_by_weight", scales_by_weight);
    }
    friend constexpr bool operator==(const descent&, const descent&) = default;
};

template <class D, class R>
descent(D, R) -> descent<D, R>;
template <class D, class R>
descent(D, R, bool) -> descent<D, R>;

static_assert(Update<descent<>, float>);

}}}  // namespace rill::RILL_ABI::train
