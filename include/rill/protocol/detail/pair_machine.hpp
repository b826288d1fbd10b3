#pragma once

#include <rill/concept/pairing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/pair_kind.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// When one rank of a pair averaging asks whom, and when the run is over; a state machine for `run_machine`.
///
/// After a gradient the rank asks a partner, drawn at random. An event that it answers with `keeps` is a model to
/// average with. Two requests that cross are each the answer to the other. A partner that does not answer within the
/// timeout, or has gone, is drawn no more.
///
/// The lowest rank that has not gone is the *root*. When a rank wants the run to end, or all have retired, the root
/// tells all to begin no more exchanges. Once none is under way on any rank, it tells all that the run is over.
template <Pairing Who>
class pair_machine {
  public:
    pair_machine(const Who& who, int size, rank_t self, random_key key, duration timeout)
        : who_(who),
          self_(self),
          key_(key),
          timeout_(timeout),
          ranks_(static_cast<std::size_t>(size)),
          everyone_(ranks_.size()) {
        std::iota(everyone_.begin(), everyone_.end(), rank_t{0});
    }

    machine_action begin(time_point now) {
        now_ = now;
        return next();
    }

    machine_action on(const machine_event& event, time_point now) {
        using what = machine_event::what;
        now_ = now;
        bool keeps = false;
        if (event.happened == what::no_room) miss(event.peer);
        if (event.happened == what::arrived) keeps = take(event);
        if (event.happened == what::nothing_came) give_up();
        machine_action asked = next();
        asked.keeps = keeps;
        return asked;
    }

    std::span<const rank_t> neighbours(segment) const { return everyone_; }
    /// Whether the model that is kept answers this rank's own request: both average with what they had sent.
    bool has_crossed() const { return has_crossed_; }
    /// Whom this rank asks no more: a rank that has gone.
    bool has_gone(rank_t rank) const { return at(rank).has_gone; }

  private:
    struct peer {
        bool has_gone = false;
        bool has_retired = false;
        bool has_finished = false;
        std::uint64_t heard = 0;  ///< the number of its latest request
    };
    struct letter {
        rank_t to;
        message_kind kind;
        std::uint64_t number;
    };

    peer& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    const peer& at(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
    rank_t root() const {
        const auto first = std::find_if(ranks_.begin(), ranks_.end(), [](const peer& p) { return !p.has_gone; });
        return static_cast<rank_t>(first - ranks_.begin());
    }
    template <class Has>
    bool all_have(Has&& has) const {
        return std::all_of(ranks_.begin(), ranks_.end(), [&](const peer& p) { return p.has_gone || has(p); });
    }

    bool take(const machine_event& event) {
        const message_kind kind = event.head.kind;
        const std::uint64_t number = event.head.number;
        has_crossed_ = false;
        if (kind == pair_kind::gone) lose(event.peer);
        if (at(event.peer).has_gone) return false;
        if (kind == pair_kind::pushed) is_due_ = !is_finishing_;
        if (kind == pair_kind::leaves) leave(number);
        if (kind == pair_kind::request) return take_request(event);
        const bool is_due = event.peer == asking_ && number == number_;
        if (kind == pair_kind::busy && is_due) end_exchange(true);
        if (kind == pair_kind::answer && is_due) return end_exchange(false), true;
        if (kind == pair_kind::left || kind == pair_kind::finished)
            letters_.push_back({event.peer, pair_kind::heard, 0});
        if (kind == pair_kind::left) take_left(event.peer, number);
        if (kind == pair_kind::finished) at(event.peer).has_finished = true;
        if (kind == pair_kind::heard && event.peer == root()) unheard_since_.reset();
        if (kind == pair_kind::finish) finish();
        if (kind == pair_kind::over) is_over_ = true;
        lead();
        return false;
    }

    bool take_request(const machine_event& event) {
        if (event.head.number <= at(event.peer).heard) return false;  // it came twice
        at(event.peer).heard = event.head.number;
        if (event.peer == asking_) {
            has_crossed_ = true;
            return end_exchange(false), true;
        }
        const bool is_busy = asking_ != no_rank;
        letters_.push_back({event.peer, is_busy ? pair_kind::busy : pair_kind::answer, event.head.number});
        return !is_busy;
    }
    void end_exchange(bool again) {
        asking_ = no_rank;
        is_due_ |= again && !is_finishing_;
        if (is_finishing_) tell_finished();
    }

    void leave(std::uint64_t how) {
        if (how == 2) {
            for (const rank_t rank : everyone_)
                if (rank != self_ && !at(rank).has_gone) letters_.push_back({rank, pair_kind::gone, 0});
            is_over_ = true;
            return;
        }
        left_ = std::max(left_, how + 1);
        tell_left();
    }
    void tell_left() {
        if (left_ == 0) return;
        if (root() == self_)
            take_left(self_, left_ - 1);
        else
            tell_root(pair_kind::left, left_ - 1);
    }
    void tell_finished() {
        at(self_).has_finished = true;
        if (root() != self_) tell_root(pair_kind::finished, 0);
        finished_at_ = now_;
        lead();
    }
    void tell_root(message_kind kind, std::uint64_t number) {
        letters_.push_back({root(), kind, number});
        unheard_since_ = now_;
    }
    void take_left(rank_t rank, std::uint64_t how) {
        at(rank).has_retired = true;
        wants_end_ |= how == 1;
    }
    void finish() {
        if (is_finishing_) return;
        is_finishing_ = true;
        is_due_ = false;
        if (asking_ == no_rank) tell_finished();
    }

    /// What only the root does.
    void lead() {
        if (root() != self_ || is_over_) return;
        const bool ends = wants_end_ || is_finishing_ || all_have([](const peer& p) { return p.has_retired; });
        if (ends && !has_called_) {
            has_called_ = true;
            called_at_ = now_;
            tell_all(pair_kind::finish);
            finish();
        }
        if (has_called_ && !is_over_ && all_have([](const peer& p) { return p.has_finished; })) {
            tell_all(pair_kind::over);
            is_over_ = true;
        }
    }
    void tell_all(message_kind kind) {
        for (const rank_t rank : everyone_)
            if (rank != self_ && !at(rank).has_gone) letters_.push_back({rank, kind, 0});
    }

    /// Nothing has come in time.
    void give_up() {
        const auto has_not = [](const peer& p) { return !p.has_gone && !p.has_finished; };
        if (asking_ != no_rank && now_ >= asked_at_ + timeout_)
            miss(asking_);
        else if (unheard_since_ && now_ >= *unheard_since_ + timeout_)
            silent_ = root();
        else if (has_called_ && now_ >= called_at_ + timeout_ * 2)
            silent_ = static_cast<rank_t>(std::find_if(ranks_.begin(), ranks_.end(), has_not) - ranks_.begin());
        else
            is_over_ = true;  // the root has told others so, or has failed
    }

    /// A rank does not answer. Without the root no rank can learn that the run is over.
    void miss(rank_t rank) {
        if (rank == root())
            silent_ = rank;
        else
            lose(rank);
    }

    /// A rank has gone: nobody waits for it. A new root is told what the old one may have known.
    void lose(rank_t rank) {
        if (rank == self_ || at(rank).has_gone) return;
        const rank_t before = root();
        at(rank).has_gone = true;
        std::erase_if(letters_, [&](const letter& each) { return each.to == rank; });
        if (asking_ == rank) end_exchange(true);
        if (root() != before) {
            unheard_since_.reset();
            tell_left();
            if (at(self_).has_finished) tell_finished();
        }
        lead();
    }

    machine_action next() {
        using ask = machine_action::ask;
        if (silent_ != no_rank) return {.what = ask::fail, .peer = silent_};
        if (!letters_.empty()) {
            const letter each = letters_.front();
            letters_.pop_front();
            return {
                .what = ask::send, .peer = each.to, .kind = each.kind, .number = each.number, .until = now_ + timeout_};
        }
        if (is_over_) return {};
        if (is_due_ && asking_ == no_rank) {
            is_due_ = false;
            asking_ = draw();
            if (asking_ != no_rank) {
                asked_at_ = now_;
                return {.what = ask::send,
                        .peer = asking_,
                        .kind = pair_kind::request,
                        .number = number_,
                        .until = now_ + timeout_};
            }
        }
        return {.what = ask::receive, .until = until()};
    }
    /// Computing may take any time; only answers of other ranks may not.
    deadline until() const {
        time_point first = deadline::never.at;
        const auto consider = [&](time_point at) { first = std::min(first, at); };
        if (asking_ != no_rank) consider(asked_at_ + timeout_);
        if (unheard_since_) consider(*unheard_since_ + timeout_);
        if (has_called_) consider(called_at_ + timeout_ * 2);
        if (at(self_).has_finished && root() != self_) consider(finished_at_ + timeout_ * 3);
        return first;
    }

    rank_t draw() {
        ++number_;
        std::vector<rank_t> open;
        for (const rank_t rank : everyone_)
            if (rank != self_ && !at(rank).has_gone && who_.asks(self_, rank, static_cast<int>(ranks_.size())))
                open.push_back(rank);
        if (open.empty()) return no_rank;
        return open[multiply_high(key_.derive(self_, number_).value, open.size())];
    }

    Who who_;
    rank_t self_;
    random_key key_;
    duration timeout_;
    std::vector<peer> ranks_;
    std::vector<rank_t> everyone_;
    std::deque<letter> letters_;
    time_point now_{};
    time_point asked_at_{};
    time_point called_at_{};  ///< to finish, as the root
    time_point finished_at_{};
    std::optional<time_point> unheard_since_{};  ///< what the root has been told
    rank_t silent_ = no_rank;                    ///< a rank that must answer, and does not
    rank_t asking_ = no_rank;
    std::uint64_t number_ = 0;  ///< of the latest exchange that this rank has begun
    std::uint64_t left_ = 0;    ///< 1: has retired; 2: wants the run to end
    bool is_due_ = false;       ///< an exchange
    bool has_crossed_ = false;
    bool is_finishing_ = false;
    bool wants_end_ = false;   ///< of any rank, as the root knows
    bool has_called_ = false;  ///< as the root
    bool is_over_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
