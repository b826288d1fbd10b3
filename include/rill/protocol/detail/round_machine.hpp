#pragma once

#include <rill/concept/completion.hpp>
#include <rill/concept/participation.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/round_children.hpp>
#include <rill/straggler/everyone.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of rounds.
struct round_kind {
    static constexpr message_kind next_round{"rounds", 1};  ///< hands down the state that begins a round
    static constexpr message_kind contribute{"rounds", 2};  ///< sends a contribution to a round
    static constexpr message_kind end_rounds{"rounds", 3};
    static constexpr message_kind round_over{"rounds", 4};  ///< tells a rank that its contribution would come too late
};

/// A contribution that a parent has taken.
struct round_arrival {
    rank_t rank = no_rank;
    int child = 0;
    std::uint64_t round = 0;
    std::uint32_t age = 0;    ///< rounds by which it came late
    std::size_t message = 0;  ///< its handle
};

/// The policies of rounds: a completion, a staleness, a trigger and a participation.
template <class Enough, class Age, class Start, class Asked = straggler::everyone>
struct round_policies {
    [[no_unique_address]] Enough enough;
    [[no_unique_address]] Age age;
    [[no_unique_address]] Start start;
    [[no_unique_address]] Asked asked{};
};

/// Why a machine of rounds fails.
enum class round_failure : std::uint8_t { no_state, too_few, no_room, not_given };

/// One rank of rounds, without the contents of messages, as a state machine: see `run_machine`. States go down a tree
/// and contributions up, round by round.
///
/// A child is given a state only when it has answered the one before, so that no link ever holds more than one message
/// each way. A rank that is late meets the newest state, and a rank that has died costs nothing. Each message carries
/// the number of its round, which shows whether it came twice or belongs to a round that has ended. A child that has
/// missed a round is told that the round is over, so that it need not gather or send what nobody wants. A state also
/// says from which round the parent has the child's latest contribution, and whether that is in a result.
template <class Policies>
class round_machine {
  public:
    using action = machine_action;
    using event = machine_event;

    /// Rank `self` of `size` ranks in a tree.
    template <class Tree>
    round_machine(Policies policies, const Tree& tree, int size, rank_t self, random_key key, duration timeout)
        : policies_(std::move(policies)),
          key_(key),
          timeout_(timeout),
          self_(self),
          parent_(tree.parent(size, self)),
          height_(tree.height(size, self)) {
        for (int i = 0; i < tree.children(size, self); ++i) {
            neighbours_.push_back(tree.child(size, self, i));
            children_.add(neighbours_.back());
        }
        if (!is_root()) neighbours_.push_back(parent_);
    }

    bool is_root() const { return parent_ == no_rank; }
    rank_t parent() const { return parent_; }  ///< `no_rank` for the root
    bool is_leaf() const { return children_.empty(); }
    bool has_ended() const { return has_ended_; }
    std::uint64_t round() const { return round_; }
    /// Whether this rank's latest contribution is in a result of the root, as far as is known.
    bool was_in() const { return is_root() || was_in_; }
    time_point began() const { return began_; }
    const traffic& counted() const { return counted_; }
    const round_children& children() const { return children_; }
    /// The children, then the parent.
    std::span<const rank_t> neighbours(segment of) const {
        return span_of(neighbours_).subspan(of.begin, of.end - of.begin);
    }
    /// By rank and round once `gather` is over. Late ones that still count are among them.
    std::span<const round_arrival> arrivals() const { return span_of(arrivals_); }
    std::vector<latecomer> take_latecomers() { return std::exchange(late_, {}); }
    /// Whether nobody waits any more for this rank's contribution to the round under way.
    bool is_over() const { return !is_root() && (end_ || over_ >= round_); }

    // This rank's own calls. Each returns its first action.

    /// At the root: begins the next round, among those that it asks, once enough children are ready.
    action begin(time_point now) {
        begin_round(round_ + 1, now);
        policies_.asked.choose(children_.count(), key_.derive(round_, fingerprint("participation")), asked_);
        children_.ask(asked_);
        return enter(phase::absorbing, now);
    }
    /// On other ranks: waits for the newest state, or the end of rounds.
    action take(time_point now) { return enter(phase::awaiting_state, now); }
    /// Gathers contributions until there are enough or the round is over.
    action gather(time_point now) { return enter(phase::gathering, now); }
    /// Hears what the parent has said meanwhile.
    action look(time_point now) { return enter(is_root() ? phase::idle : phase::looking, now); }
    /// Hands this rank's contribution to the parent.
    action hand_up(time_point now) {
        answered_ = round_;
        was_in_ = false;
        phase_ = phase::idle;
        return send(parent_, round_kind::contribute, now + timeout_);
    }
    /// Tells all ranks below that there are no more rounds. Waits at most `at_most` for room in their mailboxes.
    action end(duration at_most, time_point now) {
        told_ = owed_ = no_rank;
        has_ended_ = true;
        give_each(round_kind::end_rounds, at_most);
        return go_on(now);
    }

    action on(const event& e, time_point now) {
        bool keeps = false;
        switch (e.happened) {
            case event::what::sent: sent(e); break;
            case event::what::no_room:
                if (e.peer == parent_) return fail(round_failure::no_room, parent_);
                children_.of(e.peer).has_no_room = true;
                break;
            case event::what::arrived:
                if (e.peer != parent_ && phase_ != phase::awaiting_state) {
                    if (!is_due(e)) return fail(round_failure::not_given, e.peer, e.head.number);
                    keeps = take(e, now);
                } else {
                    keeps = e.peer == parent_ ? hear(e, now) : (early_.push_back(e), true);
                }
                break;
            case event::what::nothing_came:
                if (phase_ == phase::looking) phase_ = phase::idle;
                if (phase_ == phase::absorbing) has_absorbed(now);
                break;
            case event::what::announced: break;
        }
        action next = go_on(now);
        next.keeps = keeps;
        return next;
    }

    /// Visits all of the state that decides what comes.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        for (const auto number : {round_, answered_, over_}) visit(number);
        for (const auto time : {began_, entered_, until_}) visit(time.ns);
        for (const bool flag : {was_in_, has_ended_, end_.has_value(), is_patient_}) visit(flag);
        for (const auto number : {told_, owed_, at_}) visit(number);
        visit(phase_);
        visit(giving_.number);
        children_.visit_state(visit);
        for (const auto count : {early_.size(), arrivals_.size()}) visit(count);
        for (const event& each : early_) (visit(each.peer), visit(each.head.number), visit(each.handle));
        for (const round_arrival& each : arrivals_) (visit(each.rank), visit(each.round), visit(each.message));
    }

  private:
    using child = round_children::link;
    using fate = contribution_fate;
    enum class phase : unsigned char {
        idle,
        absorbing,       ///< takes what has come since the last round ended
        awaiting_start,  ///< the root's wait for the trigger
        awaiting_state,
        gathering,
        telling,  ///< tells children that their round is over
        looking,
        giving  ///< a state or the end, to all children that are meant
    };

    action send(rank_t to, message_kind kind, deadline until) const {
        return {.what = action::ask::send, .peer = to, .kind = kind, .number = round_, .until = until};
    }
    action receive(std::size_t begin, std::size_t end, deadline until) const {
        return {.what = action::ask::receive, .from = {begin, end}, .until = until};
    }
    action announce(rank_t waits_for) {
        told_ = waits_for;
        return {.what = action::ask::announce, .peer = waits_for};
    }
    action fail(round_failure why, rank_t because_of, std::uint64_t number = 0) const {
        return {
            .what = action::ask::fail, .peer = because_of, .number = number, .reason = static_cast<std::uint8_t>(why)};
    }

    action enter(phase to, time_point now) {
        phase_ = to;
        entered_ = now;
        return go_on(now);
    }
    bool waits() const {
        return phase_ == phase::awaiting_start || phase_ == phase::awaiting_state || phase_ == phase::gathering;
    }

    /// The next action in this phase, or in the one that follows.
    action go_on(time_point now) {
        if (owed_ != no_rank) return send(std::exchange(owed_, no_rank), round_kind::next_round, now + timeout_);
        if (told_ != no_rank && !waits()) return announce(no_rank);
        const std::size_t count = children_.size();
        switch (phase_) {
            case phase::idle: return {};
            case phase::absorbing: return absorb(now);
            case phase::awaiting_start:
                if (!starts()) return wait(children_.first_missing(round_), deadline::never.at, now);
                give_each(round_kind::next_round, timeout_);
                return go_on(now);
            case phase::awaiting_state:
                if (end_) return (begin_given(*std::exchange(end_, std::nullopt), now), go_on(now));
                return wait(parent_, deadline::never.at, now);
            case phase::gathering: {
                const time_point time_up = began_ + policies_.enough.patience(height_);
                if (!is_over() && !is_complete(now >= time_up))
                    return wait(children_.first_missing(round_), time_up, now);
                phase_ = phase::telling;
                at_ = 0;
                return go_on(now);
            }
            case phase::telling: return tell_next(now);
            case phase::looking: return end_ ? enter(phase::idle, now) : receive(count, count + 1, deadline::immediate);
            case phase::giving: return give_next(now);
        }
        return {};
    }

    /// Waits for a message until `when` at most. A wait that has lasted for half of the timeout is announced.
    action wait(rank_t first_missing, time_point when, time_point now) {
        const time_point half = entered_ + timeout_ / 2, last = entered_ + timeout_;
        if (now >= last)
            return fail(phase_ == phase::awaiting_state ? round_failure::no_state : round_failure::too_few,
                        first_missing);
        if (now >= half && first_missing != told_) return announce(first_missing);
        return receive(0, neighbours_.size(), std::min({now < when ? when : last, now < half ? half : last, last}));
    }

    void begin_round(std::uint64_t round, time_point now) {
        round_ = round;
        began_ = now;
        counted_ = {};
        arrivals_.clear();
        children_.begin_round();
    }

    /// Takes over what the parent has said about the latest contribution, and the state or the end.
    bool begin_given(const wire::header& head, time_point now) {
        was_in_ = head.contributors != 0 && answered_ != 0 && head.number - head.age == answered_;
        children_.learn_fate(was_in_);
        if (head.kind == round_kind::end_rounds) {
            has_ended_ = true;
            round_ = head.number;
            give_each(round_kind::end_rounds, timeout_);
            return false;
        }
        begin_round(head.number, now);
        phase_ = phase::absorbing;
        return true;
    }

    action absorb(time_point now) {
        for (const event& each : early_) {
            if (!is_due(each)) return fail(round_failure::not_given, each.peer, each.head.number);
            take(each, now);
        }
        early_.clear();
        if (!is_leaf()) return receive(0, children_.size(), deadline::immediate);
        has_absorbed(now);
        return go_on(now);
    }
    void has_absorbed(time_point now) {
        phase_ = phase::awaiting_start;
        entered_ = now;
        if (!is_root()) give_each(round_kind::next_round, timeout_);
    }

    bool starts() {
        return policies_.start.starts(children_.ready_with(self_), children_.count() + 1, key_.derive(round_));
    }
    bool is_complete(bool time_is_up) const {
        for (const child& each : children_)
            if (!each.is_ready() && !policies_.age.may_lead(static_cast<std::uint32_t>(round_ - each.given)))
                return false;
        return policies_.enough.is_complete(
            {.expected = children_.expected(), .in = children_.in(), .time_is_up = !is_leaf() && time_is_up});
    }

    void give_each(message_kind kind, duration at_most) {
        phase_ = phase::giving;
        giving_ = kind;
        at_most_ = at_most;
        at_ = 0;
        is_patient_ = false;
        for (child& each : children_) each.has_no_room = false;
    }
    /// Sends to those first whose mailboxes have room: a full mailbox delays nobody else.
    action give_next(time_point now) {
        while (at_ < children_.count()) {
            const child& each = children_[at_++];
            const bool is_meant = giving_ == round_kind::end_rounds || (each.is_asked && each.is_ready());
            if (is_patient_ ? each.has_no_room : is_meant)
                return send(each.rank, giving_, is_patient_ ? deadline(until_) : deadline::immediate);
        }
        if (is_patient_ || at_most_.ns <= 0) return enter(phase::idle, now);
        is_patient_ = true;
        until_ = now + at_most_;
        at_ = 0;
        return go_on(now);
    }
    action tell_next(time_point now) {
        while (at_ < children_.count()) {
            child& each = children_[at_++];
            if (each.is_ready() || each.missed_since) continue;
            each.missed_since = now;
            if (!policies_.age.accepts(1)) return send(each.rank, round_kind::round_over, deadline::immediate);
        }
        std::sort(arrivals_.begin(), arrivals_.end(), [](const round_arrival& a, const round_arrival& b) {
            return std::pair(a.rank, a.round) < std::pair(b.rank, b.round);
        });
        return enter(phase::idle, now);
    }

    void sent(const event& e) {
        counted_.sent(e.bytes);
        if (e.head.kind == round_kind::next_round) children_.of(e.peer).begins(round_);
    }

    /// Hears the parent; returns whether that gives a state that begins a round.
    bool hear(const event& e, time_point now) {
        counted_.received(e.bytes);
        const message_kind kind = e.head.kind;
        if (phase_ == phase::awaiting_state) {
            const bool came_twice = kind == round_kind::next_round && e.head.number <= round_;
            const bool begins = kind != round_kind::round_over && !came_twice && begin_given(e.head, now);
            if (begins) counted_.received(e.bytes);  // in the round that it begins
            return begins;
        }
        if (kind == round_kind::end_rounds) end_ = e.head;
        if (kind == round_kind::round_over) over_ = std::max(over_, e.head.number);
        return false;
    }

    /// False for a contribution to a round that the child has not been given.
    bool is_due(const event& e) {
        const child& from = children_.of(e.peer);
        return e.head.number <= from.answered || e.head.number == from.given;
    }
    /// Takes a contribution; returns whether it counts.
    bool take(const event& e, time_point now) {
        counted_.received(e.bytes);
        child& from = children_.of(e.peer);
        if (e.head.number <= from.answered) return false;  // it came twice
        const auto age = static_cast<std::uint32_t>(round_ - e.head.number);
        const fate becomes = fate_of(age);
        children_.answers(from, e.head.number, becomes);
        if (age != 0) late_.push_back({e.peer, age, from.missed_since ? now - *from.missed_since : duration{}});
        if (becomes != fate::out)
            arrivals_.push_back({e.peer, children_.number_of(from), e.head.number, age, e.handle});
        if (age != 0 && phase_ == phase::gathering && from.is_asked) owed_ = e.peer;
        return becomes != fate::out;
    }
    fate fate_of(std::uint32_t age) const {
        if (age == 0) return is_root() ? fate::in : fate::with_mine;
        return policies_.age.accepts(age) || !policies_.age.may_lead(age) ? fate::in : fate::out;
    }

    Policies policies_;
    random_key key_;
    duration timeout_;
    rank_t self_;
    rank_t parent_;
    int height_;
    std::vector<rank_t> neighbours_;  // children and parent
    round_children children_;
    std::vector<int> asked_;  // the numbers of the children that the root asks

    phase phase_ = phase::idle;
    time_point entered_{};   // this phase
    rank_t told_ = no_rank;  // for whom this rank has announced to wait
    rank_t owed_ = no_rank;  // a child that came late, which is given the state at once
    message_kind giving_{};
    duration at_most_{};
    time_point until_{};
    bool is_patient_ = false;  // waits for room in mailboxes that had none
    int at_ = 0;               // the next child to tell or give

    std::uint64_t round_ = 0;
    std::uint64_t answered_ = 0;
    std::uint64_t over_ = 0;  // the latest round that is over, as the parent has said
    bool was_in_ = false;
    bool has_ended_ = false;
    time_point began_{};
    traffic counted_{};
    std::optional<wire::header> end_;  // of rounds; it came while this rank did not wait for a state
    std::vector<event> early_;         // contributions that came while this rank waited for a state
    std::vector<round_arrival> arrivals_;
    std::vector<latecomer> late_;
};

}}}  // namespace rill::RILL_ABI::detail
