#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/bucket_exchange.hpp>
#include <rill/collective/bucket_plan.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/collective/start.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/objective.hpp>
#include <rill/core/random.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/compressed_state.hpp>
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
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The codecs of an `overlapped_bsp` whose buckets travel as they are.
struct no_codecs {
    friend constexpr bool operator==(const no_codecs&, const no_codecs&) = default;
};

namespace detail {

/// A codec for each bucket: `codecs` itself, or what it returns for the bucket with this number.
template <class Codecs, class T>
decltype(auto) codec_of_bucket(const Codecs& codecs, std::size_t number, const bucket& of) {
    if constexpr (requires { codecs.template bind<T>(std::size_t{}); })
        return (codecs);
    else
        return codecs(number, of);
}

/// What `overlapped_bsp` takes as codecs.
template <class Codecs, class T = float>
concept BucketCodecs =
    std::same_as<Codecs, no_codecs> || requires(const Codecs& codecs, std::size_t number, const bucket& of) {
        codecs.template bind<T>(number);
    } || requires(const Codecs& codecs, std::size_t number, const bucket& of) {
        codecs(number, of).template bind<T>(number);
    };

/// The codec of a bucket. Whether its contribution counts is known at the end of the step, not of its operation.
template <class Codec>
struct bucket_codec : Codec {
    void commit() {}
    void rollback() {}
    void settle(bool is_in_step) {
        if (is_in_step)
            Codec::commit();
        else
            Codec::rollback();
    }
};

/// The codecs of all buckets, each with its own residual.
template <class Codec>
class bucket_codecs {
  public:
    template <class T, class Codecs>
    static bucket_codecs bound(const Codecs& codecs, const bucket_plan& plan) {
        bucket_codecs made;
        made.codecs_.reserve(plan.buckets().size());
        for (const bucket& each : plan.buckets())
            made.codecs_.push_back(
                {codec_of_bucket<Codecs, T>(codecs, made.codecs_.size(), each).template bind<T>(each.elements.size())});
        return made;
    }

    std::size_t size() const { return codecs_.size(); }
    auto& operator[](std::size_t bucket) { return codecs_[bucket]; }
    const Codec& operator[](std::size_t bucket) const { return codecs_[bucket]; }

    void settle(bool is_in_step) {
        for (auto& each : codecs_) each.settle(is_in_step);
    }
    /// A hash by which ranks compare what they must have alike.
    std::uint64_t fingerprint() const {
        std::uint64_t hash = mix64(codecs_.size());
        for (const Codec& each : codecs_) hash = mix64(hash, each.codings().fingerprint(), fingerprint_of(each));
        return hash;
    }

    template <class Writer>
    void save(Writer& out, const std::string& name) const
        requires PersistentCodec<Codec>
    {
        for (std::size_t i = 0; i < size(); ++i) codecs_[i].save(out, name + "." + std::to_string(i));
    }
    template <class Reader>
    void restore(const Reader& in, const std::string& name)
        requires PersistentCodec<Codec>
    {
        auto restored = codecs_;
        for (std::size_t i = 0; i < size(); ++i) restored[i].restore(in, name + "." + std::to_string(i));
        codecs_ = std::move(restored);
    }

  private:
    std::vector<bucket_codec<Codec>> codecs_;
};

}  // namespace detail

/// An `overlapped_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_overlapped_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_overlapped_bsp(Net& net, const Policy& policy, std::span<const layer> layers, const group_options& options)
        : bound_overlapped_bsp::lockstep(net, policy, options),
          policy_(policy),
          plan_(policy.buckets.bind(layer_sizes(layers), sizeof(T))),
          state_(bound_state(policy, plan_)),
          invalid_(plan_.buckets().size()) {
        std::uint64_t codecs = 0;
        if constexpr (is_coded) codecs = state_.codec.fingerprint();
        this->compare({{"division into buckets", "codecs of the buckets"}},
                      {option_hash(plan_.fingerprint()), option_hash(codecs)});
    }

    const bucket_plan& plan() const { return plan_; }
    /// The codec of a bucket.
    const auto& codec(std::size_t bucket) const
        requires(Policy::is_coded)
    {
        return state_.codec[bucket];
    }
    auto& state() { return state_; }
    const auto& state() const { return state_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        step_record record{.step = number, .is_over = this->has_ended()};
        if (record.is_over) return record;
        const double rate = rate_at<T>(policy_.rate, number);
        stopwatch clock(this->workers().net());
        std::fill(invalid_.begin(), invalid_.end(), std::nullopt);
        settlement attempt{this};  // after the operations, which a failure cancels
        bucket_exchange buckets(this->workers(), plan_, starter{this, gradient, rate});
        record.loss = compute([&](std::size_t layer) { buckets.ready(layer); });
        record.phases.compute = clock.lap();
        record.exchange = buckets.finish();
        attempt.is_in_step = this->is_complete(record.exchange);
        record.phases.exchange = clock.lap();
        this->complete(record, first_invalid(), clock, [&] {
            const std::span<const T> slopes(gradient);
            state_.optimizer.step(parameters, slopes, is_coded ? 1 : rate);
        });
        return record;
    }

  private:
    static constexpr bool is_coded = Policy::is_coded;

    static auto bound_state(const Policy& policy, const bucket_plan& plan) {
        auto optimizer = policy.optimizer.template bind<T>(plan.dimension());
        if constexpr (is_coded) {
            using policy_type = decltype(policy.codecs);
            using codec_type = decltype(detail::codec_of_bucket<std::remove_const_t<policy_type>, T>(
                                            policy.codecs, std::size_t{}, std::declval<const bucket&>())
                                            .template bind<T>(std::size_t{}));
            using codecs_type = detail::bucket_codecs<codec_type>;
            return compressed_state<codecs_type, decltype(optimizer)>{
                codecs_type::template bound<T>(policy.codecs, plan), std::move(optimizer)};
        } else {
            return compressed_state<no_codecs, decltype(optimizer)>{{}, std::move(optimizer)};
        }
    }

    /// Tells the codecs at the end of a step whether their contributions are in it.
    struct settlement {
        bound_overlapped_bsp* of;
        bool is_in_step = false;

        ~settlement() {
            if constexpr (is_coded) of->state_.codec.settle(is_in_step);
        }
    };

    /// Starts the operation of a bucket.
    struct starter {
        bound_overlapped_bsp* of;
        std::span<T> gradient;
        double rate;

        request operator()(std::size_t i) const {
            return start(of->workers(),
                         [*this, i](auto& lane) { return of->exchange_bucket(lane, gradient, i, rate); });
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
    receipt exchange_bucket(Lane& lane, std::span<T> gradient, std::size_t i, [[maybe_unused]] double rate) {
        const segment place = plan_.buckets()[i].elements;
        const std::span<T> part = gradient.subspan(place.begin, place.size());
        const auto bad = kernel::find_non_finite(std::span<const T>(part));
        if (bad)
            invalid_[i] = place.begin + *bad;
        else
            policy_.clip.apply(part);
        const contribution own{.weight = bad ? 0.0 : 1.0};
        if constexpr (is_coded) {
            auto& codec = state_.codec[i];
            if (!bad) detail::scale_contribution(codec, part, static_cast<T>(rate));
            return all_reduce(lane, part, part, codec, aggregate::mean{}, own);
        } else {
            return all_reduce(lane, part, part, aggregate::mean{}, own);
        }
    }

    Policy policy_;
    bucket_plan plan_;
    decltype(bound_state(std::declval<const Policy&>(), std::declval<const bucket_plan&>())) state_;
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
/// `codecs` compresses the buckets: a codec for all of them, or a function that returns the codec of a bucket:
///
///     [](std::size_t number, const bucket& of) { return error_feedback{top_k{.count = of.elements.size() / 100}}; }
///
/// Buckets are numbered as they are sent, those of the last layers first; `of` tells the numbers of its layers
/// (`tensors`) and its elements. All codecs are of one type, and each has its own residual. As in `compressed_bsp`,
/// what travels is the gradient times the rate. When a step is skipped, the finite buckets of all ranks return to their
/// codecs. The function must be copyable and assignable: a lambda with captures is not.
///
/// Cost per step: an all-reduce per bucket over `topology`, dense or of compressed streams. Memory: the optimizer's,
/// the codecs', and the activities and scratch of as many operations as there are buckets. Errors: `mismatch` when it
/// is bound, if a rank has another optimizer, rate or clipping (`lockstep`), other buckets, or codecs with other
/// codings or other options that must be alike. Source: Li et al., PyTorch Distributed, VLDB 2020, section 3.2.3; a
/// codec for each layer: Renggli et al., SparCML, SC 2019.
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip, class Codecs = no_codecs>
struct overlapped_bsp {
    static constexpr const char* name = "overlapped_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = true;
    static_assert(
        Clip::is_coordinatewise,
        "rill::train::overlapped_bsp: the clipping needs the whole gradient (clip_norm), whose first buckets are "
        "under way before the last are computed; use clip_value, per_bucket{clip_norm{...}} or train::bsp");
    static constexpr bool is_coded = !std::same_as<Codecs, no_codecs>;
    static_assert(
        detail::BucketCodecs<Codecs> && std::copyable<Codecs>,
        "rill::train::overlapped_bsp: the codecs are neither a codec nor a function of a bucket's number and a "
        "const rill::bucket& that returns one, or cannot be assigned, as a lambda with captures; use a "
        "struct with operator()");
    static_assert(!is_coded || Descent::is_linear,
                  "rill::train::overlapped_bsp: a step of the optimizer (adam) does not scale with the gradient, and "
                  "what travels through codecs is the gradient times the rate; use train::sgd or leave out the codecs");

    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};
    fusion buckets{};
    Codecs codecs{};

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
template <class S, class D, class R, class C, class K>
overlapped_bsp(S, D, R, C, fusion, K) -> overlapped_bsp<S, D, R, C, K>;

}}}  // namespace rill::RILL_ABI::train
