#pragma once

#include <rill/concept/staleness.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What one server of a parameter server does and when; a state machine for `run_machine`. The workers are the ranks
/// `0 … workers-1`.
///
/// It counts the pushes of each worker, its *clock*, and answers a pull when the staleness lets its worker lead the
/// slowest one. An event that it answers with `keeps` is a push that counts, or a question whose keys are needed. The
/// run is over when no worker is left that may still push. Then nothing counts any more.
template <Staleness Age>
class server_machine {
  public:
    /// `timeout`: for a pull; `patience`: to hear from any worker.
    server_machine(const Age& age, int workers, duration timeout, duration patience)
        : age_(age),
          timeout_(timeout),
          patience_(patience),
          ranks_(static_cast<std::size_t>(workers)),
          workers_(static_cast<std::size_t>(workers)),
          working_(workers) {
        std::iota(ranks_.begin(), ranks_.end(), rank_t{0});
    }

    machine_action begin(time_point now) {
        heard_at_ = now;
        return next(now);
    }

    machine_action on(const machine_event& event, time_point now) {
        using what = machine_event::what;
        bool keeps = false;
        has_room_ = event.happened != what::no_room;
        if (event.happened == what::sent) ++told_;
        if (event.happened == what::no_room) put_off();
        if (event.happened == what::arrived) {
            heard_at_ = now;
            keeps = take(event, now);
        }
        // Where others keep the server busy there is always something that comes.
        const bool is_late = !waiting_.empty() && now >= at(waiting_.front()).asked_at + timeout_;
        if (is_late || event.happened == what::nothing_came) review(now);
        machine_action asked = next(now);
        asked.keeps = keeps;
        return asked;
    }

    std::span<const rank_t> neighbours(segment) const { return ranks_; }
    std::uint64_t clock_of(rank_t rank) const { return at(rank).clock; }
    bool has_ended(rank_t rank) const { return at(rank).is_dead; }
    /// Whether a message of it has come.
    bool has_begun(rank_t rank) const { return at(rank).clock > 0 || at(rank).question > 0; }
    bool is_over() const { return working_ == 0; }

    /// Calls `visit(number)` for all that its next actions depend on, so that an explorer knows equal states.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const worker& each : workers_) {
            visit(each.clock), visit(each.question), visit(each.asked_at.ns);
            visit(each.has_left), visit(each.is_given_up), visit(each.is_dead);
        }
        for (const rank_t rank : waiting_) visit(rank);
        for (std::size_t i = told_; i < due_.size(); ++i)
            visit(due_[i].to), visit(due_[i].kind.number), visit(due_[i].number);
        visit(waiting_.size()), visit(due_.size() - told_), visit(has_room_), visit(ends_), visit(lost_of_);
    }

    /// For whom a worker waits in vain: the slowest one.
    rank_t late_for(rank_t asker) const { return at(asker).has_left ? slowest_working() : slowest_; }

    /// Why it fails.
    static constexpr std::uint8_t push_is_missing = 1, all_are_silent = 2;

  private:
    struct worker {
        std::uint64_t clock = 0;     ///< pushes
        std::uint64_t question = 0;  ///< the number of the latest one
        time_point asked_at{};
        bool has_left = false;  ///< it pushes no more
        bool is_given_up = false;
        bool is_dead = false;

        bool works() const { return !has_left && !is_given_up && !is_dead; }
    };
    struct reply {
        rank_t to;
        message_kind kind;
        std::uint64_t number;
    };

    /// The slowest worker of those that count.
    template <class Counts>
    rank_t slowest_of(Counts&& counts) const {
        rank_t slowest = no_rank;
        for (const rank_t rank : ranks_)
            if (counts(at(rank)) && (slowest == no_rank || at(rank).clock < at(slowest).clock)) slowest = rank;
        return slowest;
    }
    rank_t slowest_working() const {
        return slowest_of([](const worker& each) { return each.works(); });
    }

    worker& at(rank_t rank) { return workers_[static_cast<std::size_t>(rank)]; }
    const worker& at(rank_t rank) const { return workers_[static_cast<std::size_t>(rank)]; }

    bool take(const machine_event& event, time_point now) {
        const message_kind kind = event.head.kind;
        if (is_over() || lacks(event.peer, pushed_before(event.head))) return false;
        if (kind == server_kind::push) return count(event, now);
        if (kind == server_kind::give_up && event.head.number < ranks_.size())
            change(static_cast<rank_t>(event.head.number), now, [](worker& of) { of.is_given_up = true; });
        if (kind == server_kind::ended) {
            std::erase(waiting_, event.peer);
            change(event.peer, now, [](worker& of) { of.is_dead = true; });
        }
        if (kind == server_kind::retire || kind == server_kind::end) {
            ends_ |= kind == server_kind::end;
            change(event.peer, now, [](worker& of) { of.has_left = true; });
        }
        const bool asks = kind.number != 0 && kind.number <= server_kind::end.number;
        return asks && hold(event, now);
    }

    /// How often the sender had pushed before it sent a message, as far as the message says.
    static std::uint64_t pushed_before(const wire::header& head) {
        return head.kind == server_kind::push ? head.number : static_cast<std::uint64_t>(head.weight);
    }
    bool lacks(rank_t rank, std::uint64_t pushes) {
        if (pushes <= at(rank).clock) return false;
        lost_of_ = rank;
        lost_ = pushes;
        return true;
    }

    /// Counts the worker's next push, and no other.
    bool count(const machine_event& event, time_point now) {
        worker& from = at(event.peer);
        if (event.head.number != from.clock) return false;  // it came twice
        ++from.clock;
        if (event.peer == slowest_) review(now);
        return true;
    }

    /// Changes what a worker takes part in, and looks for whom that helps.
    template <class Change>
    void change(rank_t rank, time_point now, Change&& change_it) {
        const bool worked = at(rank).works();
        change_it(at(rank));
        if (worked && !at(rank).works()) --working_;
        if (worked && is_over())
            tell_all(now);
        else
            review(now);
    }

    bool hold(const machine_event& event, time_point now) {
        worker& from = at(event.peer);
        if (event.head.number <= from.question || is_over()) return false;
        from.question = event.head.number;
        from.asked_at = now;
        std::erase(waiting_, event.peer);  // the list is in the order of asking
        if (!settle(event.peer, now)) waiting_.push_back(event.peer);
        return true;
    }

    /// Finds the slowest worker anew, and answers those who need not wait any more.
    void review(time_point now) {
        slowest_ = slowest_of([](const worker& each) { return !each.has_left && !each.is_given_up; });
        std::erase_if(waiting_, [&](rank_t rank) { return settle(rank, now); });
    }

    /// Decides what a worker that has asked is told. False: it must wait.
    bool settle(rank_t rank, time_point now) {
        const worker& asker = at(rank);
        std::optional<message_kind> told;
        if (!asker.has_left && ends_)
            told = server_kind::over;
        else if (!asker.has_left && may_read(asker))
            told = server_kind::answer;
        else if (now >= asker.asked_at + timeout_ || (!asker.has_left && at(slowest_).is_dead))
            told = server_kind::late;
        if (told) due_.push_back({rank, *told, asker.question});
        return told.has_value();
    }
    bool may_read(const worker& asker) const {
        if (slowest_ == no_rank || asker.clock <= at(slowest_).clock) return true;
        const std::uint64_t lag = asker.clock - at(slowest_).clock - 1;
        return age_.may_lead(
            static_cast<std::uint32_t>(std::min<std::uint64_t>(lag, std::numeric_limits<std::uint32_t>::max())));
    }

    /// The run is over: nobody waits any more.
    void tell_all(time_point now) {
        waiting_.clear();
        over_at_ = now;
        for (const rank_t rank : ranks_)
            if (!at(rank).is_dead) due_.push_back({rank, server_kind::final, at(rank).question});
    }

    /// The mailbox of a receiver is full: tells the others first.
    void put_off() {
        const auto first = due_.begin() + static_cast<std::ptrdiff_t>(told_);
        std::rotate(first, first + 1, due_.end());
    }

    machine_action next(time_point now) {
        using ask = machine_action::ask;
        if (lost_of_ != no_rank)
            return {.what = ask::fail, .peer = lost_of_, .number = lost_, .reason = push_is_missing};
        if (now >= heard_at_ + patience_)
            return {.what = ask::fail, .peer = slowest_working(), .reason = all_are_silent};
        if (told_ == due_.size()) {
            due_.clear();
            told_ = 0;
            if (is_over()) return {};
        } else if (has_room_) {
            const reply& each = due_[told_];
            return {.what = ask::send, .peer = each.to, .kind = each.kind, .number = each.number};
        } else if (is_over() && now >= over_at_ + timeout_) {
            return {};
        }
        return {.what = ask::receive, .until = until(now)};
    }
    deadline until(time_point now) const {
        if (!has_room_) return now + nap(timeout_);
        const time_point silent = heard_at_ + patience_;
        return waiting_.empty() ? silent : std::min(silent, at(waiting_.front()).asked_at + timeout_);
    }

    Age age_;
    duration timeout_;
    duration patience_;
    time_point heard_at_{};  ///< of any worker, the last time
    std::vector<rank_t> ranks_;
    std::vector<worker> workers_;
    int working_;                  ///< workers that may still push
    rank_t slowest_ = 0;           ///< among those that are waited for; also one that has ended
    std::vector<rank_t> waiting_;  ///< who has asked and must wait, by the time of asking
    std::vector<reply> due_;       ///< what to tell
    std::size_t told_ = 0;         ///< how many of `due_` have been told
    bool has_room_ = true;         ///< the latest message has not met a full mailbox
    bool ends_ = false;            ///< a worker has ended the run
    time_point over_at_{};
    rank_t lost_of_ = no_rank;  ///< of whom a push is missing
    std::uint64_t lost_ = 0;    ///< how often it has pushed
};

}}}  // namespace rill::RILL_ABI::detail
