#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/bucket_exchange.hpp>
#include <rill/collective/bucket_plan.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/collective/start.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/objective.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/layer_sizes.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/strategy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// An `overlapped_bsp` bound to one worker.
template <class Policy, std::floating_point T>
class bound_overlapped_bsp {
  public:
    bound_overlapped_bsp(const Policy& policy, std::span<const layer> layers)
        : policy_(policy),
          plan_(policy.buckets.bind(layer_sizes(layers), sizeof(T))),
          optimizer_(policy.optimizer.template bind<T>(plan_.dimension())),
          invalid_(plan_.buckets().size()) {}

    const bucket_plan& plan() const { return plan_; }
    std::uint64_t fingerprint() const { return plan_.fingerprint(); }

    /// The exchange of one step; `gradient` is lost.
    template <class Group>
    auto begin(Group& workers, std::span<T> gradient) {
        return step_exchange<Group>(*this, workers, gradient);
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
    /// Starts the operation of a bucket.
    template <class Group>
    struct starter {
        bound_overlapped_bsp* of;
        Group* workers;
        std::span<T> gradient;

        request operator()(std::size_t i) const {
            return start(*workers, [*this, i](auto& lane) { return of->exchange_bucket(lane, gradient, i); });
        }
    };

    template <class Group>
    class step_exchange {
      public:
        step_exchange(bound_overlapped_bsp& of, Group& workers, std::span<T> gradient)
            : of_(of), workers_(workers), gradient_(gradient), buckets_(workers, of.plan_, {&of, &workers, gradient}) {
            std::fill(of.invalid_.begin(), of.invalid_.end(), std::nullopt);
        }

        void ready(std::size_t layer) { buckets_.ready(layer); }

        receipt finish(std::span<T> parameters, std::uint64_t number) {
            const receipt done = buckets_.finish();
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            if (done.contributors == workers_.size())
                of_.optimizer_.step(parameters, std::span<const T>(gradient_), of_.policy_.rate.rate(number));
            return done;
        }

        std::optional<std::size_t> invalid() const {
            std::optional<std::size_t> first;
            for (const auto& each : of_.invalid_)
                if (each && (!first || *each < *first)) first = each;
            return first;
        }

      private:
        bound_overlapped_bsp& of_;
        Group& workers_;
        std::span<T> gradient_;
        bucket_exchange<Group, starter<Group>> buckets_;
    };

    /// In an activity of its own, like the search for what is not finite.
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
    std::vector<std::optional<std::size_t>>
        invalid_;  ///< of each bucket, this rank's first coordinate that is not finite
};

/// Bulk-synchronous data-parallel descent whose gradients travel while they are computed: neighbouring layers share
/// buckets, and a bucket's all-reduce starts as soon as the backward pass has left its layers.
///
/// Needs a `LayeredObjective` and a `ConcurrentTransport`. Where activities do not run alone (`rill::mpi` below
/// MPI_THREAD_MULTIPLE) the exchanges go on at the end of each layer's backward pass, and not within it.
///
/// Over a topology that preserves the order of ranks the parameters are those of `bsp`, bit for bit; over others (a
/// ring) those of `bsp` with an exchange per bucket, since where a coordinate lies in its message decides the order in
/// which it is folded. A step is skipped on all ranks as soon as any bucket of any rank is not finite. Clipping acts on
/// each rank's own gradient, bucket by bucket: one that needs the whole gradient is refused.
///
/// Cost per step: a dense all-reduce per bucket over `topology`. Memory: the optimizer's, and the activities and
/// scratch of as many operations as there are buckets. Source: Li et al., PyTorch Distributed, VLDB 2020,
/// section 3.2.3.
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct overlapped_bsp {
    static_assert(
        Clip::is_coordinatewise,
        "rill::train::overlapped_bsp: the clipping needs the whole gradient (clip_norm), whose first buckets are "
        "under way before the last are computed; use clip_value, per_bucket{clip_norm{...}} or train::bsp");

    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};
    fusion buckets{};

    template <std::floating_point T = float>
    bound_overlapped_bsp<overlapped_bsp, T> bind(std::span<const layer> layers) const {
        return {*this, layers};
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
