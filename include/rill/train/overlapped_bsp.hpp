#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/agree.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/bucket_exchange.hpp>
#include <rill/collective/bucket_plan.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/collective/start.hpp>
#include <rill/concept/objective.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/layer_sizes.hpp>
#include <rill/train/lockstep.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/stopwatch.hpp>
#include <rill/train/strategy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// An `overlapped_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_overlapped_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_overlapped_bsp(Net& net, const Policy& policy, std::span<const layer> layers, const group_options& options)
        : bound_overlapped_bsp::lockstep(net, policy.topology, options),
          policy_(policy),
          plan_(policy.buckets.bind(layer_sizes(layers), sizeof(T))),
          optimizer_(policy.optimizer.template bind<T>(plan_.dimension())),
          invalid_(plan_.buckets().size()) {
        agree(this->workers(), {{"division into buckets"}}, {option_hash(plan_.fingerprint())});
    }

    const bucket_plan& plan() const { return plan_; }
    auto& state() { return optimizer_; }
    const auto& state() const { return optimizer_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        step_record record{.step = number, .is_over = this->has_ended()};
        if (record.is_over) return record;
        stopwatch clock(this->workers().net());
        std::fill(invalid_.begin(), invalid_.end(), std::nullopt);
        bucket_exchange buckets(this->workers(), plan_, starter{this, gradient});
        record.loss = compute([&](std::size_t layer) { buckets.ready(layer); });
        record.phases.compute = clock.lap();
        record.exchange = buckets.finish();
        record.phases.exchange = clock.lap();
        this->complete(record, first_invalid(), clock,
                       [&] { optimizer_.step(parameters, std::span<const T>(gradient), policy_.rate.rate(number)); });
        return record;
    }

  private:
    /// Starts the operation of a bucket.
    struct starter {
        bound_overlapped_bsp* of;
        std::span<T> gradient;

        request operator()(std::size_t i) const {
            return start(of->workers(), [*this, i](auto& lane) { return of->exchange_bucket(lane, gradient, i); });
        }
    };

    /// This rank's first coordinate that is not finite.
    std::optional<std::size_t> first_invalid() const {
        std::optional<std::size_t> first;
        for (const auto& each : invalid_)
            if (each && (!first || *each < *first)) first = each;
        return first;
    }

    /// Runs in the bucket's own activity; searching for values that are not finite does too.
    template <class Lane>
    receipt exchange_bucket(Lane& lane, std::span<T> gradient, std::size_t i) {
        const segment place = plan_.buckets()[i].elements;
        const std::span<T> part = gradient.subspan(place.begin, place.size());
        const auto bad = kernel::find_non_finite(std::span<const T>(part));
        if (bad)
            invalid_[i] = place.begin + *bad;
        else
            policy_.clip.apply(part);
        return all_reduce(lane, part, part, aggregate::mean{}, contribution{.weight = bad ? 0.0 : 1.0});
    }

    Policy policy_;
    bucket_plan plan_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
    std::vector<std::optional<std::size_t>> invalid_;  ///< of each bucket, this rank's first that is not finite
};

/// Bulk-synchronous data-parallel descent whose gradients travel while they are computed: neighbouring layers share
/// buckets, and a bucket's all-reduce starts as soon as the backward pass has left its layers.
///
/// Models `Strategy`. Needs a `LayeredObjective` and a `ConcurrentTransport`. Where activities do not run alone
/// (`rill::mpi` below MPI_THREAD_MULTIPLE) the exchanges progress only at the end of each layer's backward pass, not
/// during it.
///
/// Over a topology that preserves the order of ranks the parameters are those of `bsp`, bit for bit. Over others (a
/// ring) they are those of an exchange per bucket, because the order in which a coordinate is folded depends on its
/// place in the message. A step is skipped on all ranks as soon as any bucket of any rank is not finite. Clipping acts
/// on each rank's own gradient, bucket by bucket. A clipping that needs the whole gradient does not compile.
///
/// Cost per step: a dense all-reduce per bucket over `topology`. Memory: the optimizer's, and the activities and
/// scratch of as many operations as there are buckets. Source: Li et al., PyTorch Distributed, VLDB 2020,
/// section 3.2.3.
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct overlapped_bsp {
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = true;
    static_assert(
        Clip::is_coordinatewise,
        "rill::train::overlapped_bsp: the clipping needs the whole gradient (clip_norm), whose first buckets are "
        "under way before the last are computed; use clip_value, per_bucket{clip_norm{...}} or train::bsp");

    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};
    fusion buckets{};

    template <std::floating_point T = float, class Net>
    bound_overlapped_bsp<Net, overlapped_bsp, T> bind(Net& net, std::span<const layer> layers,
                                                      const group_options& options = {}) const {
        return {net, *this, layers, options};
    }
    friend constexpr bool operator==(const overlapped_bsp&, const overlapped_bsp&) = default;
};

template <class S, class D, class R>
overlapped_bsp(S, D, R) -> overlapped_bsp<S, D, R>;
template <class S, class D, class R, class C>
overlapped_bsp(S, D, R, C) -> overlapped_bsp<S, D, R, C>;
template <class S, class D, class R, class C>
overlapped_bsp(S, D, R, C, fusion) -> overlapped_bsp<S, D, R, C>;

}}}  // namespace rill::RILL_ABI::train
