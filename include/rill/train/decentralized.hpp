#pragma once

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/span_of.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/compressed_state.hpp>
#include <rill/train/detail/beside.hpp>
#include <rill/train/every.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/step_order.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/stopwatch.hpp>
#include <rill/train/strategy.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// The gossip of a `decentralized` strategy. `coordinated_mixing` has one of its own.
template <class Net, class Mix>
class mixing_session {
  public:
    template <class Group>
    mixing_session(Group& workers, const Mix& mixing) : models_(workers, mixing) {}

    gossip<Net, Mix>& models() { return models_; }
    const gossip<Net, Mix>& models() const { return models_; }

    static constexpr bool contributes() { return true; }
    /// Whether there is a next exchange. Asked in each step, also between exchanges.
    static constexpr bool next() { return true; }
    static void end() {}
    template <class Group>
    void resume_at(Group&, const Mix&, std::uint64_t round) {
        models_.resume_at(round);
    }

  private:
    gossip<Net, Mix> models_;
};

}  // namespace detail

/// What a bound `decentralized` saves. Of push-sum the model and its weight, of which the parameters are the quotient.
template <class Codec, class Descent, class Order, std::floating_point T>
struct decentralized_state {
    Codec codec;
    Descent optimizer;
    Order order;
    aligned_vector<T> pushed{};
    double weight = 1;

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        const std::string name(prefix);
        optimizer.save(out, prefix);
        rill::detail::save_part(out, name + "codec", codec);
        if constexpr (Persistent<Order>) order.save(out, prefix);
        out.add(name + "pushed", span_of(pushed));
        out.add(name + "weight", std::span<const double>(&weight, 1));
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name(prefix);
        decentralized_state restored = *this;
        restored.optimizer.restore(in, prefix);
        rill::detail::restore_part(in, name + "codec", restored.codec);
        if constexpr (Persistent<Order>) restored.order.restore(in, prefix);
        in.read(name + "pushed", span_of(restored.pushed));
        in.read(name + "weight", std::span<double>(&restored.weight, 1));
        *this = std::move(restored);
    }
};

/// A `decentralized` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_decentralized {
    using mixing_type = decltype(Policy::mixing);
    using codec_type = decltype(std::declval<const Policy&>().codec.template bind<T>(std::size_t{}));
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));
    using order_type = decltype(std::declval<const Policy&>().order.template bind<T>(std::size_t{}));
    static constexpr bool pushes = !mixing_type::is_doubly_stochastic;
    static constexpr bool is_beside = requires { requires decltype(Policy::order)::is_beside; };
    static_assert(!is_beside || ConcurrentTransport<Net>,
                  "rill::train::decentralized: mix_beside needs activities beside the caller, and the transport is no "
                  "ConcurrentTransport; use mix_before, which gives the same bits");

  public:
    bound_decentralized(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : policy_(checked(policy, net)),
          workers_(net, topology::recursive_doubling{}, options),
          gossip_(workers_, policy_.mixing),
          state_{policy.codec.template bind<T>(dimension), policy.optimizer.template bind<T>(dimension),
                 policy.order.template bind<T>(dimension), aligned_vector<T>(pushes ? dimension : 0)},
          mixed_(is_beside && !pushes ? dimension : 0),
          activity_(net) {}

    auto& workers() { return workers_; }
    /// What the last exchange did: whose models were mixed, with which weights.
    const round_receipt& latest() const { return latest_; }
    const codec_type& codec() const { return state_.codec; }

    bool contributes() const { return gossip_.contributes(); }
    /// All ranks call it after the same step.
    void end() { has_ended_ = true; }
    auto& state() { return state_; }
    const auto& state() const { return state_; }
    std::uint64_t position() const { return models().round(); }
    void resume_at(std::uint64_t position) {
        gossip_.resume_at(workers_, policy_.mixing, position);
        has_ended_ = false;
        has_mixed_ = false;
    }
    void add_up(std::span<std::int64_t> table) { all_reduce(workers_, table, table); }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const bool exchanges = policy_.exchange.exchanges(number);
        stopwatch clock(workers_.net());
        if (has_ended_) gossip_.end();
        if (!has_ended_ && !has_mixed_) has_ended_ = !gossip_.next();
        step_record record{.step = number, .is_over = has_ended_};
        if (has_ended_) return record;
        const double rate = rate_at<T>(policy_.rate, number);
        if (!has_mixed_) begin_at(parameters, number);
        const duration waited = clock.lap();
        const std::span<T> model = pushes ? span_of(state_.pushed) : parameters;
        const auto move = [&] {
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            clock.lap();
            if (record.invalid.empty()) {
                policy_.clip.apply(gradient);
                state_.optimizer.step(model, std::span<const T>(gradient), rate);
            }
            record.phases.update = clock.lap();
        };
        const auto descend = [&] {
            record.loss = compute();
            if (const auto bad = kernel::find_non_finite(std::span<const T>(gradient)))
                record.invalid.push_back({workers_.rank(), *bad});
            record.phases.compute = clock.lap();
        };
        if constexpr (is_beside) {
            mix_beside_of(model, exchanges, descend);
            record.phases.exchange = clock.lap();
            move();
        } else {
            descend();
            const auto mix = [&] {
                if (!exchanges) return;
                clock.lap();
                latest_ = models().mix(model, state_.codec);
                record.phases.exchange = clock.lap();
            };
            state_.order.step(model, move, mix);
        }
        if (exchanges) record.exchange = static_cast<const receipt&>(latest_);
        if constexpr (pushes) {
            state_.weight = models().weight();
            models().debias(model, parameters);
        }
        record.phases.exchange = record.phases.exchange + waited;
        record.elapsed = clock.total();
        return record;
    }

  private:
    auto& models() { return gossip_.models(); }
    const auto& models() const { return gossip_.models(); }
    static const Policy& checked(const Policy& policy, Net& net) {
        using order = decltype(Policy::order);
        rill::detail::require_option(policy.exchange.steps > 0, "train::every: steps", policy.exchange.steps,
                                     "at least 1", net.rank());
        detail::require_clipping(policy.clip);
        if constexpr (order::mixes_all) {
            order::require_mixing(policy.mixing, net.size(), net.rank());
            rill::detail::require_option(policy.exchange.steps == 1, "train::decentralized: steps of `every`",
                                         policy.exchange.steps, "1, as the order mixes in each step", net.rank());
        }
        return policy;
    }
    /// Mixes beside `descend`, which reads the parameters: so a copy of them is mixed. A step that an exception of
    /// `descend` has left has mixed: when it is made again it only descends.
    template <class Descend>
    void mix_beside_of(std::span<T> model, bool exchanges, Descend&& descend) {
        if (!exchanges) return descend();
        if (has_mixed_) {
            descend();
        } else {
            if constexpr (!pushes) std::copy(model.begin(), model.end(), mixed_.begin());
            const std::span<T> mixes = pushes ? model : span_of(mixed_);
            const auto mix = [&] {
                latest_ = models().mix(mixes, state_.codec);
                has_mixed_ = true;
            };
            activity_.run(mix, descend);
        }
        has_mixed_ = false;
        if constexpr (!pushes) std::copy(mixed_.begin(), mixed_.end(), model.begin());
    }
    /// The first step of a run begins with what all ranks have alike.
    void begin_at(std::span<const T> parameters, std::uint64_t number) {
        if constexpr (DifferenceCompressor<codec_type, T>)
            if (!state_.codec.has_started()) state_.codec.start_at(parameters);
        if constexpr (pushes) {
            models().resume_at(models().round(), state_.weight);  // it may have been restored
            if (number == 0 && !has_mixed_) std::copy(parameters.begin(), parameters.end(), state_.pushed.begin());
        }
    }

    struct no_activity {
        explicit no_activity(Net&) {}
    };
    template <class N, bool has>
    struct activity_of {
        using type = no_activity;
    };
    template <ConcurrentTransport N>
    struct activity_of<N, true> {
        using type = detail::beside<N>;
    };
    using activity_type = typename activity_of<Net, is_beside>::type;
    using group_type = decltype(group{std::declval<Net&>(), topology::recursive_doubling{}, group_options{}});

    Policy policy_;
    group_type workers_;
    detail::mixing_session<Net, mixing_type> gossip_;
    decentralized_state<codec_type, optimizer_type, order_type, T> state_;
    round_receipt latest_{};
    aligned_vector<T> mixed_;  ///< what is mixed beside the gradient
    [[no_unique_address]] activity_type activity_;
    bool has_ended_ = false;
    bool has_mixed_ = false;  ///< in the step under way, which an exception has left
};

/// Descent in which each rank has a model of its own, moves it along its own gradient, and mixes it with those of a few
/// others: decentralised descent by `gossip`.
///
///     train::decentralized{ring_neighbours{}, sgd, rate};                                       // D-PSGD
///     train::decentralized{random_matching{}, sgd, rate, random_mask{.density = 0.01}};         // as SAPS-PSGD
///     train::decentralized{ring_neighbours{}, sgd, rate, difference{top_k{.density = 0.01}, 0.05}};  // CHOCO-SGD
///     train::decentralized{ring_neighbours{.own = 0.5}, sgd, rate, keep_all{}, d_squared{}};    // D²
///     train::decentralized{coordinated_mixing{fast, coordinated{}}, sgd, rate, random_mask{}};  // SAPS-PSGD
///
/// `order`: whether a model is mixed after its step, before it, beside its gradient, or as D² says. `exchange`:
/// `every{k}` makes k local steps for one exchange. Over a mixing that is only column stochastic the parameters are the
/// estimates of push-sum (SGP).
///
/// Models `Strategy`. Replicas are not equal: each rank's parameters are its own, and a gradient that is not finite
/// skips its own rank's step alone; that rank mixes all the same. All ranks make equally many steps, and call `end`
/// after the same one. Differences and push-sum begin with the parameters of the first step, alike on all ranks.
/// Checkpoints: all ranks save between the same two steps. Cost per step: that of `gossip::mix`. Memory: that of the
/// optimizer, the codec and the order; a model more for push-sum.
template <Mixing Mix, Optimizer Descent, RateSchedule Rate, class Codec = compress::keep_all,
          StepOrder Order = mix_after, Clipping Clip = no_clip>
struct decentralized {
    static constexpr const char* name = "decentralized";
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    Mix mixing{};
    Descent optimizer{};
    Rate rate{};
    Codec codec{};
    Order order{};
    every exchange{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float, class Net>
    bound_decentralized<Net, decentralized, T> bind(Net& net, std::span<const layer> layers,
                                                    const group_options& options = {}) const {
        static_assert(!Order::mixes_all || std::same_as<Codec, compress::keep_all>,
                      "rill::train::decentralized: the order needs whole models mixed, and the codec sends a part; use "
                      "compress::keep_all, or another order");
        static_assert(!Order::mixes_all || (Mix::is_symmetric && Mix::keeps_neighbours && Mix::is_doubly_stochastic),
                      "rill::train::decentralized: the order needs a symmetric mixing that keeps its neighbours; use "
                      "topology::ring_neighbours or metropolis");
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const decentralized&, const decentralized&) = default;
};

template <class M, class D, class R>
decentralized(M, D, R) -> decentralized<M, D, R>;
template <class M, class D, class R, class C>
decentralized(M, D, R, C) -> decentralized<M, D, R, C>;
template <class M, class D, class R, class C, class O>
decentralized(M, D, R, C, O) -> decentralized<M, D, R, C, O>;
template <class M, class D, class R, class C, class O>
decentralized(M, D, R, C, O, every) -> decentralized<M, D, R, C, O>;
template <class M, class D, class R, class C, class O, class L>
decentralized(M, D, R, C, O, every, L) -> decentralized<M, D, R, C, O, L>;

}}}  // namespace rill::RILL_ABI::train
