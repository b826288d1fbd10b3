#pragma once

#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/coordinated_kind.hpp>
#include <rill/protocol/detail/coordinator_machine.hpp>
#include <rill/protocol/detail/machine_loop.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// One worker of a gossip with a coordinator; a state machine for `run_machine`.
///
/// It sends its values to its peer, waits for the peer's, reports to the coordinator whether they have come, and waits
/// for its next order. That says whether both ends have the values; then the machine answers the order with `keeps`,
/// upon which the values are mixed in. Values may come before the order that names their sender.
///
/// Where links are measured, it first looks whether the values are there already: only if they are not, the time that
/// it waits for them says how fast the link is.
///
/// Reports are repeated once in each timeout, since they or their answers may be lost. Values that do not come within
/// the timeout are waited for no more.
class exchange_machine {
  public:
    exchange_machine(int size, const coordinated_limits& limits)
        : limits_(limits), ranks_(static_cast<std::size_t>(size)), is_gone_(ranks_.size(), false) {
        std::iota(ranks_.begin(), ranks_.end(), rank_t{0});
    }

    /// Before it first joins: it has made so many rounds.
    void resume_at(std::uint64_t round) { order_.round = round; }
    /// Asks for a first order, and if it `needs_model` for a model as well.
    machine_action join(bool needs_model, time_point now) {
        needs_model_ = needs_model;
        since_ = now;
        ask_to_join(now);
        return next(now);
    }
    /// Does the round of the order.
    machine_action exchange(time_point now) {
        step_ = step::exchanging;
        since_ = now;
        has_mixed_ = false;
        has_values_ = has_early(coordinated_kind::values);
        has_looked_ = !limits_.measures;
        waited_ = {};
        sent_bytes_ = 0;
        is_declined_ = order_.peer == no_rank || has_early(coordinated_kind::decline) || is_gone(order_.peer);
        if (order_.peer != no_rank && !is_gone(order_.peer))
            letters_.push_back({order_.peer, coordinated_kind::values});
        return next(now);
    }
    /// Takes part no more.
    machine_action leave(time_point now) {
        if (step_ == step::ordered && order_.peer != no_rank)
            letters_.push_back({order_.peer, coordinated_kind::decline});
        letters_.push_back({0, coordinated_kind::leave});
        step_ = step::outside;
        return next(now);
    }

    machine_action on(const machine_event& event, time_point now) {
        using what = machine_event::what;
        bool keeps = false;
        if (event.happened == what::sent && event.head.kind == coordinated_kind::values) sent_bytes_ = event.bytes;
        if (event.happened == what::arrived) keeps = take(event, now);
        if (event.happened == what::nothing_came) give_up(now);
        machine_action asked = next(now);
        asked.keeps = keeps;
        return asked;
    }

    std::span<const rank_t> neighbours(segment) const { return ranks_; }
    /// The latest order.
    const round_order& order() const { return order_; }
    /// Whether it has an order that it has not followed yet.
    bool is_ordered() const { return step_ == step::ordered; }
    bool is_over() const { return step_ == step::over; }
    /// Whether the others go on without it.
    bool is_out() const { return step_ == step::out; }
    /// Whether the coordinator has ended before the run.
    bool is_abandoned() const { return step_ == step::abandoned; }
    bool takes_part() const { return step_ == step::ordered || step_ == step::exchanging || step_ == step::awaiting; }
    bool has_values() const { return has_values_; }
    /// Of the round.
    round_report report() const { return {.has_values = has_values_, .waited = waited_, .bytes = sent_bytes_}; }
    bool needs_model() const { return needs_model_; }
    /// Whether the latest exchange has counted.
    bool has_mixed() const { return has_mixed_; }
    std::uint32_t joins() const { return joins_; }

    /// Calls `visit` with each number that the next actions depend on.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const letter& each : letters_) visit(each.to), visit(each.kind.number);
        for (const bool flag : is_gone_) visit(flag);
        for (const bool flag :
             {has_values_, is_declined_, has_mixed_, needs_model_, is_welcome_, has_model_, has_looked_, failed_})
            visit(flag);
        for (const rank_t rank : {order_.peer, order_.other, early_.from}) visit(rank);
        visit(letters_.size()), visit(order_.round), visit(order_.commits), visit(early_.round), visit(joins_);
        visit(early_.kind.number), visit(static_cast<int>(step_)), visit(since_.ns), visit(told_at_.ns);
        visit(model_round_), visit(reason_), visit(waited_.ns);
    }

    /// Why it fails.
    static constexpr std::uint8_t coordinator_is_silent = 1, model_is_missing = 2;

  private:
    enum class step : unsigned char { outside, joining, ordered, exchanging, awaiting, over, out, abandoned };
    struct letter {
        rank_t to;
        message_kind kind;
    };
    /// What a peer has sent before this worker knew that it is the peer.
    struct early_message {
        message_kind kind{};
        rank_t from = no_rank;
        std::uint64_t round = 0;
    };

    bool is_gone(rank_t rank) const { return rank != no_rank && is_gone_[static_cast<std::size_t>(rank)]; }
    bool has_early(message_kind kind) const {
        return early_.kind == kind && early_.from == order_.peer && early_.round == order_.round;
    }

    /// How long it has waited for its peer, if it had to.
    duration waited_until(time_point now) const { return has_looked_ && limits_.measures ? now - since_ : duration{}; }
    bool take(const machine_event& event, time_point now) {
        const message_kind kind = event.head.kind;
        if (kind == coordinated_kind::ended) take_end(event.peer);
        if (kind == coordinated_kind::arrived) is_gone_[static_cast<std::size_t>(event.peer)] = false;
        if (kind == coordinated_kind::values || kind == coordinated_kind::decline) return take_values(event, now);
        if (kind == coordinated_kind::model) return take_model(event.head.number);
        if (coordinated_kind::is_from_coordinator(kind)) return take_order(kind, round_order::of(event.head), now);
        return false;
    }
    void take_end(rank_t rank) {
        is_gone_[static_cast<std::size_t>(rank)] = true;
        if (rank == 0 && step_ != step::over) {
            step_ = step::abandoned;
            letters_.clear();
        }
        if (step_ == step::exchanging && rank == order_.peer) is_declined_ = true;
    }
    bool take_values(const machine_event& event, time_point now) {
        const std::uint64_t round = event.head.number;
        const bool is_awaited = step_ == step::exchanging && event.peer == order_.peer && round == order_.round;
        if (is_awaited) {
            if (has_values_ || is_declined_) return false;
            (event.head.kind == coordinated_kind::values ? has_values_ : is_declined_) = true;
            if (has_values_) waited_ = waited_until(now);
            return has_values_;
        }
        if (step_ != step::joining && round != order_.round + 1) return false;
        if (early_.round >= round && early_.from != no_rank) return false;
        early_ = {event.head.kind, event.peer, round};
        return event.head.kind == coordinated_kind::values;
    }
    bool take_model(std::uint64_t round) {
        if (step_ != step::joining || !needs_model_ || (has_model_ && model_round_ >= round)) return false;
        has_model_ = true;
        model_round_ = round;
        return true;
    }
    bool take_order(message_kind kind, const round_order& given, time_point now) {
        if (given.joins != joins_) return false;
        const bool is_next =
            step_ == step::joining ? !is_welcome_ : step_ == step::awaiting && given.round == order_.round + 1;
        if (kind == coordinated_kind::out && (step_ == step::joining || step_ == step::awaiting)) {
            step_ = step::out;
        } else if (is_next && kind == coordinated_kind::over) {
            letters_.push_back({0, coordinated_kind::heard});
            return follow(given, step::over);
        } else if (is_next && kind == coordinated_kind::begin) {
            told_at_ = now;  // a model may be on its way
            if (given.other != no_rank && step_ == step::awaiting)
                letters_.push_back({given.other, coordinated_kind::model});
            return follow(given, step_ == step::joining ? step::joining : step::ordered);
        } else if (kind == coordinated_kind::over && step_ == step::over) {
            letters_.push_back({0, coordinated_kind::heard});
        }
        return false;
    }
    bool follow(const round_order& given, step then) {
        has_mixed_ = step_ == step::awaiting && given.commits && has_values_;
        is_welcome_ = true;
        order_ = given;
        step_ = then;
        return has_mixed_;
    }

    void ask_to_join(time_point now) {
        ++joins_;
        step_ = is_gone(0) ? step::abandoned : step::joining;
        if (is_gone(0)) return;
        is_welcome_ = has_model_ = has_mixed_ = false;
        early_ = {};
        tell(coordinated_kind::join, now);
    }
    void tell(message_kind kind, time_point now) {
        letters_.push_back({0, kind});
        told_at_ = now;
    }
    /// Nothing has come in time.
    void give_up(time_point now) {
        if (step_ == step::exchanging && now >= since_ + limits_.timeout) {
            is_declined_ = true;
            waited_ = waited_until(now);
        }
        if (step_ == step::exchanging) has_looked_ = true;
        if (step_ != step::joining && step_ != step::awaiting) return;
        if (now >= since_ + limits_.patience + limits_.timeout)
            return fail(step_ == step::joining && is_welcome_ ? model_is_missing : coordinator_is_silent);
        if (now < told_at_ + limits_.timeout) return;
        if (step_ == step::joining && is_welcome_)
            ask_to_join(now);  // the model has not come; another rank's may
        else
            tell(step_ == step::joining ? coordinated_kind::join : coordinated_kind::report, now);
    }
    void fail(std::uint8_t reason) {
        if (step_ == step::over) return;
        failed_ = true;
        reason_ = reason;
    }

    machine_action next(time_point now) {
        using ask = machine_action::ask;
        if (failed_) return {.what = ask::fail, .peer = 0, .reason = reason_};
        if (letters_.empty()) proceed(now);
        if (!letters_.empty()) {
            const letter each = letters_.front();
            letters_.erase(letters_.begin());
            return {.what = ask::send,
                    .peer = each.to,
                    .kind = each.kind,
                    .number = number_of(each.kind),
                    .until = now + (may_wait(each.kind) ? limits_.timeout : duration{})};
        }
        if (step_ != step::joining && step_ != step::exchanging && step_ != step::awaiting) return {};
        return {.what = ask::receive, .until = until()};
    }
    void proceed(time_point now) {
        if (step_ == step::exchanging && (has_values_ || is_declined_)) {
            step_ = step::awaiting;
            since_ = now;
            tell(coordinated_kind::report, now);
        }
        if (step_ == step::joining && is_welcome_ && (!needs_model_ || (has_model_ && model_round_ == order_.round)))
            step_ = step::ordered;
    }
    std::uint64_t number_of(message_kind kind) const {
        return kind == coordinated_kind::join || kind == coordinated_kind::leave ? joins_ : order_.round;
    }
    static bool may_wait(message_kind kind) {
        return kind != coordinated_kind::decline && kind != coordinated_kind::leave;
    }
    deadline until() const {
        if (step_ == step::exchanging) return has_looked_ ? since_ + limits_.timeout : deadline::immediate;
        return std::min(told_at_ + limits_.timeout, since_ + limits_.patience + limits_.timeout);
    }

    coordinated_limits limits_;
    std::vector<rank_t> ranks_;
    std::vector<bool> is_gone_;
    std::vector<letter> letters_{};
    step step_ = step::outside;
    round_order order_{};
    early_message early_{};
    time_point since_{};    ///< the step began
    time_point told_at_{};  ///< the coordinator was told something
    duration waited_{};     ///< for the peer's values, if that is known
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t model_round_ = 0;
    std::uint32_t joins_ = 0;
    bool has_values_ = false;   ///< of its peer
    bool is_declined_ = false;  ///< no values will come
    bool has_looked_ = true;    ///< whether the values are there already
    bool has_mixed_ = false;
    bool needs_model_ = false;
    bool is_welcome_ = false;  ///< it has an order since it has joined
    bool has_model_ = false;
    bool failed_ = false;
    std::uint8_t reason_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
