#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/stream/stream.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/detail/without_number.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/stopwatch.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// What bound strategies have in common whose ranks all take part in each step and move alike: the group, the check
/// that they do move alike, and how a step is skipped.
///
/// Making it is collective. Errors: `mismatch` on all ranks if one has another strategy, optimizer, rate or clipping,
/// which names the odd rank and what differs. Policies are compared that have a name; of others the ranks must see to
/// it that they are alike.
///
/// A rank whose gradient holds a NaN or an infinity contributes with weight 0, by which all ranks see it at no cost;
/// only then do they tell each other where.
template <class Net, class Shape>
class lockstep {
  public:
    using group_type = group<Net, Shape>;

    /// `policy`: a strategy with `topology`. Its `optimizer`, `rate` and `clip` are compared, as far as it has them.
    template <class Policy>
    lockstep(Net& net, const Policy& policy, const group_options& options) : workers_(net, policy.topology, options) {
        std::uint64_t optimizer = 0, rate = 0, clip = 0;
        if constexpr (requires { policy.optimizer; }) optimizer = fingerprint_if_named(policy.optimizer);
        if constexpr (requires { policy.rate; }) rate = fingerprint_if_named(policy.rate);
        if constexpr (requires { policy.clip; }) clip = fingerprint_if_named(policy.clip);
        compare(
            option_names{{"strategy", "optimizer", "rate", "clipping"}},
            {option_hash(fingerprint_if_named(policy)), option_hash(optimizer), option_hash(rate), option_hash(clip)});
        if constexpr (requires { policy.clip; }) detail::require_clipping(policy.clip);
    }

    /// Collective, before the first step. Throws `mismatch` on all ranks, naming the odd one, unless they start with
    /// the same bits.
    void require_same_start(byte_view parameters) {
        compare(option_names{{"first model"}}, {option_hash(checksum(parameters))});
    }

    group_type& workers() { return workers_; }

    static constexpr bool contributes() { return true; }
    void end() { has_ended_ = true; }
    std::uint64_t position() const { return workers_.operation_number(); }
    void resume_at(std::uint64_t position) {
        workers_.resume_at(position);
        has_ended_ = false;
    }
    /// For the ranks' agreement on their files: one that is refused changes no random number.
    void add_up(std::span<std::int64_t> table) {
        detail::without_number(workers_, [&] { all_reduce(workers_, table, table); });
    }

  protected:
    bool has_ended() const { return has_ended_; }

    /// The rate of the step that begins, checked before anything is computed or sent. 0 after `end`. `T`: the type of
    /// the parameters.
    template <class T, RateSchedule Rate>
    double rate_of(const Rate& schedule, std::uint64_t number) const {
        return has_ended_ ? 0 : rate_at<T>(schedule, number);
    }

    /// Calls `agree`; the random numbers of the steps do not depend on it.
    void compare(const option_names& names, const option_hashes& hashes) {
        detail::without_number(workers_, [&] { agree(workers_, names, hashes); });
    }

    bool is_complete(const receipt& done) const { return done.contributors == workers_.size(); }

    /// The first coordinate of a gradient that is not finite.
    template <class T>
    static std::optional<std::size_t> first_invalid(std::span<T> gradient) {
        return kernel::find_non_finite(std::span<const T>(gradient));
    }
    template <class T>
    static std::optional<std::size_t> first_invalid(const stream<T>& gradient) {
        const auto entry = kernel::find_non_finite(gradient.values());
        return entry && !gradient.is_dense() ? gradient.indices()[*entry] : entry;
    }

    /// A step that computes `gradient`, a span or a stream, then calls `exchange(own)`, which returns the receipt, then
    /// `move()`.
    template <class Gradient, class Compute, class Exchange, class Move>
    step_record step_with(std::uint64_t number, const Gradient& gradient, Compute&& compute, Exchange&& exchange,
                          Move&& move) {
        step_record record{.step = number, .is_over = has_ended_};
        if (has_ended_) return record;
        stopwatch clock(workers_.net());
        record.loss = compute();
        const auto bad = first_invalid(gradient);
        record.phases.compute = clock.lap();
        record.exchange = exchange(contribution{.weight = bad ? 0.0 : 1.0});
        record.phases.exchange = clock.lap();
        complete(record, bad, clock, move);
        return record;
    }

    /// Moves after a complete exchange; else all ranks skip the step and learn why. `bad`: the first coordinate of this
    /// rank's gradient that is not finite.
    template <class Move>
    void complete(step_record& record, std::optional<std::size_t> bad, stopwatch<Net>& clock, Move&& move) {
        if (is_complete(record.exchange)) {
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            move();
        } else {
            explain_skip(bad, record);
        }
        record.phases.update = clock.lap();
        record.elapsed = clock.total();
    }

  private:
    /// Every rank learns whose gradients cannot be used: coordinate + 1 at the place of each such rank.
    void explain_skip(std::optional<std::size_t> bad, step_record& record) {
        std::vector<std::int64_t> places(static_cast<std::size_t>(workers_.size()));
        if (bad) places[static_cast<std::size_t>(workers_.rank())] = static_cast<std::int64_t>(*bad) + 1;
        record.exchange.wire += all_reduce(workers_, places, places).wire;
        for (std::size_t rank = 0; rank < places.size(); ++rank)
            if (places[rank] != 0)
                record.invalid.push_back({static_cast<rank_t>(rank), static_cast<std::size_t>(places[rank] - 1)});
    }

    group_type workers_;
    bool has_ended_ = false;
};

}}}  // namespace rill::RILL_ABI::train
