#pragma once

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/request.hpp>
#include <rill/collective/start.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/receipt.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/lockstep.hpp>
#include <rill/train/optimizer.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/stopwatch.hpp>
#include <rill/train/strategy.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// What a bound `sparse_bsp` saves: the optimizer's state and, with staleness 1, this rank's gradient whose exchange is
/// under way, which a restored strategy sends again.
template <class Descent, std::floating_point T>
struct sparse_state {
    Descent optimizer;
    stream<T> sent{};
    std::uint64_t step_sent = 0;           ///< the number of its step + 1; 0: nothing is under way
    std::optional<std::size_t> invalid{};  ///< its first coordinate that is not finite
    std::uint64_t operation = 0;           ///< how many operations the group had counted before it was sent

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        const std::string name = std::string(prefix) + "sparse_bsp.";
        optimizer.save(out, prefix);
        out.add(name + "sent", head());
        out.add(name + "sent.indices", step_sent != 0 ? sent.indices() : std::span<const std::uint32_t>());
        out.add(name + "sent.values", step_sent != 0 ? sent.values() : std::span<const T>());
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name = std::string(prefix) + "sparse_bsp.";
        sparse_state read = *this;
        read.optimizer.restore(in, prefix);
        saved_head saved{};
        in.read(name + "sent", saved);
        const auto room = read.sent.make_sparse({0, sent.dimension()}, static_cast<std::size_t>(saved[2]));
        in.read(name + "sent.indices", room.indices);
        in.read(name + "sent.values", room.values);
        for (std::size_t e = 0; e < room.indices.size(); ++e)
            if (room.indices[e] >= sent.dimension() || (e > 0 && room.indices[e] <= room.indices[e - 1]))
                throw data_error(in.path(), "section \"" + name + "sent.indices\"",
                                 "ascending indices below " + std::to_string(sent.dimension()),
                                 std::to_string(room.indices[e]));
        read.step_sent = saved[0];
        read.invalid = saved[1] == 0 ? std::nullopt : std::optional<std::size_t>(saved[1] - 1);
        read.operation = saved[3];
        *this = std::move(read);
    }

  private:
    using saved_head = std::array<std::uint64_t, 4>;
    saved_head head() const {
        return {step_sent, invalid ? *invalid + 1 : 0, step_sent != 0 ? sent.count() : 0, operation};
    }
};

/// A `sparse_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_sparse_bsp : public lockstep<Net, decltype(Policy::topology)> {
    using base = lockstep<Net, decltype(Policy::topology)>;
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));
    static_assert(StreamOptimizer<optimizer_type, T, stream_view<T>>,
                  "rill::train::sparse_bsp: the optimizer does not move along a stream; give it step(parameters, "
                  "stream_view, rate), as train::sgd has");

  public:
    bound_sparse_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : base(net, policy, options),
          policy_(policy),
          state_{.optimizer = policy.optimizer.template bind<T>(dimension), .sent = stream<T>(dimension)} {
        rill::detail::require_option(
            policy.staleness.rounds <= (ConcurrentTransport<Net> ? 1U : 0U), "train::sparse_bsp: staleness",
            policy.staleness.rounds,
            ConcurrentTransport<Net> ? "bounded{0} or bounded{1}" : "bounded{0}, since the transport is not concurrent",
            net.rank());
        this->compare({{"staleness"}}, {option_hash(fingerprint(policy_.staleness))});
    }
    bound_sparse_bsp(const bound_sparse_bsp&) = delete;
    bound_sparse_bsp& operator=(const bound_sparse_bsp&) = delete;
    /// Waits for the exchange under way, which other ranks need.
    ~bound_sparse_bsp() {
        if (under_way_.is_valid()) under_way_.wait();
    }

    auto& state() { return state_; }
    const auto& state() const { return state_; }

    void resume_at(std::uint64_t position) {
        if (under_way_.is_valid()) under_way_.get();
        base::resume_at(position);
    }

    template <class Compute>
    step_record step(std::span<T> parameters, stream<T>& gradient, std::uint64_t number, Compute&& compute) {
        if constexpr (ConcurrentTransport<Net>)
            if (policy_.staleness.rounds > 0) return step_beside(parameters, gradient, number, compute);
        RILL_EXPECTS(state_.step_sent == 0,
                     "train::sparse_bsp: the checkpoint holds a gradient that is still to be "
                     "exchanged; go on with staleness 1");
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            return all_reduce(this->workers(), gradient, mean_, aggregate::mean{}, policy_.codings, own);
        };
        return this->step_with(number, gradient, compute, exchange, [&] { move(parameters, rate); });
    }

  private:
    void move(std::span<T> parameters, double rate) { state_.optimizer.step(parameters, mean_.view(), rate); }

    /// Computes while the exchange of the step before runs, moves by that one, and starts its own.
    template <class Compute>
    step_record step_beside(std::span<T> parameters, stream<T>& gradient, std::uint64_t number, Compute&& compute) {
        // Checked before the gradient is sent; the next step moves by it.
        this->template rate_of<T>(policy_.rate, number);
        step_record record{.step = number, .is_over = this->has_ended()};
        stopwatch clock(this->workers().net());
        std::optional<std::size_t> bad;
        if (state_.step_sent != 0 && !under_way_.is_valid()) send_again();
        if (!record.is_over) {
            record.loss = compute();
            bad = this->first_invalid(gradient);
        }
        record.phases.compute = clock.lap();
        if (state_.step_sent != 0) {
            record.exchange = under_way_.get();
            record.phases.exchange = clock.lap();
            this->complete(record, state_.invalid, clock,
                           [&] { move(parameters, rate_at<T>(policy_.rate, state_.step_sent - 1)); });
            state_.step_sent = 0;
        }
        if (!record.is_over) {
            std::swap(state_.sent, gradient);
            state_.invalid = bad;
            state_.step_sent = number + 1;
            send();
        }
        record.elapsed = clock.total();
        return record;
    }

    void send() {
        state_.operation = base::position();
        under_way_ = start(this->workers(), [this](auto& lane) {
            return all_reduce(lane, state_.sent, mean_, aggregate::mean{}, policy_.codings,
                              contribution{.weight = state_.invalid ? 0.0 : 1.0});
        });
    }

    /// Sends what a checkpoint held, with the random numbers of the first time.
    void send_again() {
        const std::uint64_t next = base::position();
        this->workers().resume_at(state_.operation);
        send();
        this->workers().resume_at(next);
    }

    Policy policy_;
    sparse_state<optimizer_type, T> state_;
    stream<T> mean_;
    request under_way_;
};

/// Bulk-synchronous descent along gradients that are sparse by themselves: each step follows the mean of all ranks'
/// gradients, of which the entries travel. Nothing is selected and nothing is left out, so there is no residual.
///
/// Over a topology that preserves the order of ranks the parameters are those of `bsp` with the dense gradients, bit
/// for bit, if all codings are lossless. `codings.copy` may be lossy where it is unbiased (qsgd); a lossy coding of
/// contributions adds noise that nothing takes back.
///
/// With `.staleness = straggler::bounded{1}` the exchange of step t runs while the gradient of step t + 1 is computed.
/// So a gradient is computed at parameters that miss the newest step, a record tells of the exchange of the step
/// before, and the last exchange moves the parameters in the call of `step` after `end`. Needs a `ConcurrentTransport`.
/// A checkpoint of it goes on with staleness 1.
///
/// Models `Strategy`. Cost per step: one all-reduce of streams over `topology`, and a step of the optimizer; that of
/// `sgd` passes over all parameters if it has momentum or weight decay. Memory: the optimizer's and the mean's entries;
/// with staleness also a second gradient. Errors: `bind` throws `mismatch` on all ranks if one has another staleness,
/// optimizer or rate (`lockstep`). Source: MPI-OPT (Renggli et al., SparCML, SC
/// 2019, section 7).
template <Topology Shape, Optimizer Descent, RateSchedule Rate>
struct sparse_bsp {
    static constexpr const char* name = "sparse_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;
    static constexpr bool is_sparse = true;

    Shape topology{};
    stream_codings codings{};
    Descent optimizer{};
    Rate rate{};
    straggler::bounded staleness{0};

    template <std::floating_point T = float, class Net>
    bound_sparse_bsp<Net, sparse_bsp, T> bind(Net& net, std::span<const layer> layers,
                                              const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const sparse_bsp&, const sparse_bsp&) = default;
};

template <class S, class D, class R>
sparse_bsp(S, stream_codings, D, R) -> sparse_bsp<S, D, R>;
template <class S, class D, class R>
sparse_bsp(S, stream_codings, D, R, straggler::bounded) -> sparse_bsp<S, D, R>;

}}}  // namespace rill::RILL_ABI::train
