#pragma once

#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/pair_kind.hpp>
#include <rill/protocol/detail/pair_peers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// When one rank of a pair averaging asks whom, and when the run is over; a state machine for `run_machine`.
///
/// After a gradient the rank draws a partner and sends its model, which the partner answers by its own. A partner that
/// may ask others is first asked whether it is free, without a model. It is busy while it asks or while it waits for a
/// model that it has been promised; the rank then draws another. Two ranks that ask each other are free for each other,
/// and the models that they send are each the answer to the other. An event that the machine answers with `keeps` is a
/// model to average with.
///
/// A rank that will ask no more tells all, and is drawn no more. It serves until all have told so and have heard it.
/// While it waits it calls those that have not, once in each timeout.
///
/// Two ranks of which one has waited for the other in vain are *lost* to each other: neither draws the other or waits
/// for it any more. A rank that has lost half of those that live, itself counted among them, fails: of ranks that are
/// cut off from each other, at most one side goes on. `Who` is a `Pairing`, as `pair_averaging` requires.
template <class Who>
class pair_machine {
  public:
    pair_machine(const Who& who, int size, rank_t self, random_key key, duration timeout)
        : who_(who), self_(self), key_(key), timeout_(timeout), peers_(size) {}

    machine_action begin(time_point now) {
        now_ = now;
        return next();
    }

    machine_action on(const machine_event& event, time_point now) {
        using what = machine_event::what;
        now_ = now;
        bool keeps = false;
        if (event.happened == what::no_room) lose(event.peer);
        if (event.happened == what::arrived) keeps = take(event);
        if (event.happened == what::nothing_came) give_up();
        machine_action asked = next();
        asked.keeps = keeps;
        return asked;
    }

    std::span<const rank_t> neighbours(segment) const { return peers_.ranks(); }
    /// Whether the model that is kept answers this rank's own: both average with what they had sent.
    bool has_crossed() const { return has_crossed_; }
    /// How many partners this rank has drawn.
    std::uint64_t draws() const { return number_; }
    /// Goes on after so many, before it begins.
    void resume_after(std::uint64_t draws) { number_ = draws; }

    /// Calls `visit` with each number that the next actions depend on.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const pair_peer& each : peers_) each.visit_state(visit);
        for (const letter& each : letters_) visit(each.to), visit(each.kind.number), visit(each.number);
        for (const rank_t rank : {asking_, held_by_, cut_off_from_}) visit(rank);
        for (const time_point time : {asked_at_, held_at_, called_at_}) visit(time.ns);
        for (const bool flag : {is_due_, has_sent_}) visit(flag);
        visit(letters_.size()), visit(number_), visit(leaves_), visit(told_);
    }

  private:
    struct letter {
        rank_t to;
        message_kind kind;
        std::uint64_t number;
    };

    pair_peer& at(rank_t rank) { return peers_.at(rank); }
    const pair_peer& at(rank_t rank) const { return peers_.at(rank); }

    bool take(const machine_event& event) {
        const message_kind kind = event.head.kind;
        const std::uint64_t number = event.head.number;
        const rank_t from = event.peer;
        has_crossed_ = false;
        if (kind == pair_kind::gone) leave_out(from);
        if (kind == pair_kind::lost) lose(from);
        if (!at(from).is_there()) return false;
        if (kind == pair_kind::pushed) is_due_ = leaves_ != pair_kind::ends;
        if (kind == pair_kind::leaves) leave(number);
        if (kind == pair_kind::ask && at(from).is_new(2 * number)) take_question(from, number);
        if (kind == pair_kind::request) return at(from).is_new(2 * number + 1) && take_model(from, number);
        if (from == asking_ && number == number_) {
            if (kind == pair_kind::free && !has_sent_) send_model();
            if (kind == pair_kind::busy) refuse();
            if (kind == pair_kind::answer) return end_exchange(), true;
        }
        if (kind == pair_kind::finished) letters_.push_back({from, pair_kind::heard, told_});
        if (kind == pair_kind::heard) at(from).has_replied = true;
        if (kind == pair_kind::finished || kind == pair_kind::heard) take_departure(from, number);
        return false;
    }

    void take_question(rank_t from, std::uint64_t number) {
        if (from == asking_ && !has_sent_) return send_model();
        const bool is_busy = asking_ != no_rank || held_by_ != no_rank;
        letters_.push_back({from, is_busy ? pair_kind::busy : pair_kind::free, number});
        if (is_busy) return;
        held_by_ = from;
        held_at_ = now_;
    }
    bool take_model(rank_t from, std::uint64_t number) {
        has_crossed_ = from == asking_ && has_sent_;
        if (!has_crossed_) letters_.push_back({from, pair_kind::answer, number});
        if (held_by_ == from) held_by_ = no_rank;
        if (asking_ == from) end_exchange();
        return true;
    }

    void begin_exchange() {
        is_due_ = has_sent_ = false;
        ++number_;
        asking_ = draw();
        if (asking_ == no_rank) return end_exchange();
        if (!may_be_busy(asking_)) return send_model();
        letters_.push_back({asking_, pair_kind::ask, number_});
        asked_at_ = now_;
    }
    rank_t draw() const {
        const auto is_open = [&](rank_t rank) {
            const pair_peer& each = at(rank);
            return each.is_there() && !each.has_finished && !each.is_busy && may_ask(self_, rank);
        };
        const auto open = std::count_if(peers_.ranks().begin(), peers_.ranks().end(), is_open);
        if (open == 0) return no_rank;
        auto before = multiply_high(key_.derive(self_, number_).value, static_cast<std::uint64_t>(open));
        return *std::find_if(peers_.ranks().begin(), peers_.ranks().end(),
                             [&](rank_t rank) { return is_open(rank) && before-- == 0; });
    }
    bool may_ask(rank_t asker, rank_t other) const { return asker != other && who_.asks(asker, other, peers_.size()); }
    bool may_be_busy(rank_t rank) const {
        return std::any_of(peers_.ranks().begin(), peers_.ranks().end(),
                           [&](rank_t other) { return may_ask(rank, other); });
    }
    void send_model() {
        letters_.push_back({asking_, pair_kind::request, number_});
        asked_at_ = now_;
        has_sent_ = true;
    }
    void refuse() {
        at(asking_).is_busy = true;
        draw_again();
    }
    void draw_again() {
        asking_ = no_rank;
        is_due_ = leaves_ != pair_kind::ends;
    }
    void end_exchange() {
        asking_ = no_rank;
        for (pair_peer& each : peers_) each.is_busy = false;
    }

    void leave(std::uint64_t how) {
        if (how == pair_kind::is_destroyed) tell_all(pair_kind::gone, 0);
        leaves_ = std::max(leaves_, how);
        is_due_ &= leaves_ == pair_kind::retires;
    }
    void take_departure(rank_t from, std::uint64_t how) {
        if (how == pair_kind::stays) return;
        at(from).has_finished = true;
        if (how == pair_kind::ends) leave(how);
    }
    void tell_departure() {
        told_ = leaves_;
        at(self_).has_finished = at(self_).has_replied = true;
        tell_all(pair_kind::finished, told_);
        begin_call();
    }
    void call_again() {
        for (const rank_t rank : peers_.ranks())
            if (at(rank).is_awaited()) letters_.push_back({rank, pair_kind::finished, told_});
        begin_call();
    }
    void begin_call() {
        for (pair_peer& each : peers_)
            if (each.is_awaited()) each.has_replied = false;
        called_at_ = now_;
    }
    bool is_over() const {
        return leaves_ == pair_kind::is_destroyed ||
               (told_ == leaves_ && told_ != pair_kind::stays && peers_.await_nobody());
    }
    void tell_all(message_kind kind, std::uint64_t number) {
        for (const rank_t rank : peers_.ranks())
            if (rank != self_ && at(rank).is_there()) letters_.push_back({rank, kind, number});
    }

    /// Nothing has come in time.
    void give_up() {
        if (asking_ != no_rank && now_ >= asked_at_ + timeout_) return lose(asking_);
        if (held_by_ != no_rank && now_ >= held_at_ + timeout_) return lose(held_by_);
        for (const rank_t rank : peers_.ranks())
            if (at(rank).is_awaited() && !at(rank).has_replied) lose(rank);
        call_again();
    }

    void lose(rank_t rank) {
        if (rank == self_ || !at(rank).is_there()) return;
        at(rank).is_lost = true;
        forget(rank);
        letters_.push_back({rank, pair_kind::lost, 0});
        review();
    }
    void leave_out(rank_t rank) {
        at(rank).has_gone = true;
        forget(rank);
        review();
    }
    void forget(rank_t rank) {
        std::erase_if(letters_, [&](const letter& each) { return each.to == rank; });
        if (held_by_ == rank) held_by_ = no_rank;
        if (asking_ == rank) draw_again();
    }
    void review() {
        if (cut_off_from_ != no_rank) return;
        cut_off_from_ = peers_.cut_off_from();
        if (cut_off_from_ != no_rank) tell_all(pair_kind::gone, 0);
    }

    machine_action next() {
        using ask = machine_action::ask;
        if (letters_.empty() && cut_off_from_ == no_rank && !is_over()) proceed();
        if (!letters_.empty()) {
            const letter each = letters_.front();
            letters_.erase(letters_.begin());
            const bool may_wait = each.kind != pair_kind::lost && each.kind != pair_kind::gone;
            return {.what = ask::send,
                    .peer = each.to,
                    .kind = each.kind,
                    .number = each.number,
                    .until = may_wait ? now_ + timeout_ : now_};
        }
        if (cut_off_from_ != no_rank) return {.what = ask::fail, .peer = cut_off_from_};
        if (is_over()) return {};
        return {.what = ask::receive, .until = until()};
    }
    void proceed() {
        if (is_due_ && asking_ == no_rank && held_by_ == no_rank) begin_exchange();
        if (told_ < leaves_ && !is_due_ && asking_ == no_rank) tell_departure();
    }
    /// Computing may take any time; only answers of other ranks may not.
    deadline until() const {
        time_point first = deadline::never.at;
        const auto consider = [&](bool counts, time_point since) {
            if (counts) first = std::min(first, since + timeout_);
        };
        consider(asking_ != no_rank, asked_at_);
        consider(held_by_ != no_rank, held_at_);
        consider(told_ != pair_kind::stays, called_at_);
        return first;
    }

    Who who_;
    rank_t self_;
    random_key key_;
    duration timeout_;
    pair_peers peers_;
    std::vector<letter> letters_;
    time_point now_{};
    time_point asked_at_{};
    time_point held_at_{};
    time_point called_at_{};         ///< those that have not finished
    rank_t asking_ = no_rank;        ///< with whom this rank's own exchange is under way
    rank_t held_by_ = no_rank;       ///< whom it has promised to be free for
    rank_t cut_off_from_ = no_rank;  ///< why it fails
    std::uint64_t number_ = 0;       ///< of the latest exchange that it has begun
    std::uint64_t leaves_ = 0;       ///< its `departure`
    std::uint64_t told_ = 0;         ///< what the others have been told of it
    bool is_due_ = false;            ///< an exchange
    bool has_sent_ = false;          ///< its model, for its own exchange
    bool has_crossed_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
