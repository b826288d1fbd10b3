#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/quorum.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What happens to a rank that takes part in an agreement.
struct agreement_event {
    enum class what : std::uint8_t {
        prepared,      ///< this rank has the whole result of the step after its last committed one
        all_prepared,  ///< it knows that all members have it
        gives_up,      ///< it takes back a step that it has prepared, and keeps no result of it
        caught_up,     ///< it has what was committed up to `step` from others
        ends,          ///< the view is to end: an attempt has failed, or a member goes or comes
        leaves,        ///< the view is to end, and this rank is to be left out
        arrived,       ///< `message` of `peer`
        changed,       ///< the transport tells `change` of `peer`
        joins,         ///< the life `incarnation` of `peer` asks to be taken in
        tick           ///< a time of `wake()` has come
    };
    what happened = what::tick;
    rank_t peer = no_rank;
    peer_change change{};
    std::uint64_t incarnation = 0;
    const agreement_message* message = nullptr;
    std::uint64_t step = 0;
};

/// What a rank does for an agreement.
struct agreement_action {
    enum class ask : std::uint8_t {
        send,   ///< `message` to `peer`; it may be lost
        probe,  ///< ask the transport for a sign of `peer`, so that its silence is noticed
        fence   ///< the life `incarnation` of `peer`
    };
    ask what = ask::send;
    rank_t peer = no_rank;
    std::uint64_t incarnation = 0;
    agreement_message message{};
};

/// How long the ranks of an agreement wait.
struct agreement_limits {
    duration repeat{};    ///< until a message is sent again
    duration patience{};  ///< for members that are not lost, once a quorum has answered; longer than silence takes
    duration longest{};   ///< until a rank gives up
};

/// One rank's part in the steps of a view and in the decision about the next one; a state machine without a transport
/// and without a clock. `on(event, now)` returns what to do.
///
/// *Two phases.* A rank is prepared when it has a step's whole result. It commits the step when it knows that all
/// members are prepared. Whoever answers a ballot is *frozen*: it neither prepares nor commits until the decision. The
/// decision names the last committed step: the smallest that any answer has prepared. If a rank has committed a step,
/// all members were prepared before, so that no answer is below it. If a step is not named, one answer was below it,
/// and as this rank stays frozen, nobody commits it. A rank that gives up waiting says that it lacks the result, and
/// gets it from others if the step is named; what all have given up is not named.
///
/// *One decision for each epoch.* It is a single-decree Paxos among the members of the view. A coordinator, the lowest
/// rank that is not lost, collects answers in its ballot; it proposes the value that was accepted in the highest
/// ballot, or one made of the answers; what a quorum accepts is decided. Coordinators may die at any point, and several
/// may try at once. Only lives that the view lists are heard.
///
/// *Who stays.* Whoever answers and does not leave; and whoever has not answered but has not ended and is not lost to
/// all that answer. Who computes for long is not lost. Newcomers that a member knows come in.
///
/// Messages may be lost, repeated and reordered. Cost: two round trips after the coordinator is called, and a message
/// with the decision; 5 (P - 1) messages. All state is of the size of the view,
/// and a seat for each life that has ended.
class agreement_machine {
  public:
    using actions = std::vector<agreement_action>;

    /// Begins in the view of `first`, with the state after its step. `self` is a member of it, in the life that it
    /// lists.
    agreement_machine(agreement_decision first, rank_t self, quorum policy, agreement_limits limits)
        : self_(self),
          policy_(policy),
          limits_(limits),
          committed_(first.step),
          prepared_(first.step),
          last_(std::move(first)) {
        enter(last_.next, last_.step);
    }

    /// The actions are valid until the next call.
    const actions& on(const agreement_event& event, time_point now) {
        using event_is = agreement_event::what;
        now_ = now;
        actions_.clear();
        switch (event.happened) {
            case event_is::prepared: prepare(); break;
            case event_is::all_prepared: commit(); break;
            case event_is::gives_up: lacks_ = prepared_ > committed_; break;
            case event_is::caught_up: prepared_ = committed_ = std::max(committed_, event.step); break;
            case event_is::leaves: leaves_ = true; [[fallthrough]];
            case event_is::ends: end_view(); break;
            case event_is::arrived: take(event.peer, *event.message); break;
            case event_is::changed: change(event.peer, event.change, event.incarnation); break;
            case event_is::joins: join({event.peer, event.incarnation}); break;
            case event_is::tick: break;
        }
        proceed();
        return actions_;
    }

    const rill::view& view() const { return view_; }
    /// The last step that was committed before this view. This rank may lack it; then it takes no part in a step.
    std::uint64_t base() const { return base_; }
    std::uint64_t committed() const { return committed_; }
    std::uint64_t prepared() const { return prepared_; }
    /// Whether an agreement is under way: this rank has no part in any step until it is over.
    bool is_frozen() const { return is_frozen_; }
    /// Whether the others have decided to go on without this rank.
    bool is_excluded() const { return is_excluded_; }
    /// Who is missing where no quorum can be had; empty otherwise. It may be had later.
    const std::vector<rank_t>& missing() const { return missing_; }
    /// What `view()` was made of.
    const agreement_decision& last() const { return last_; }
    /// The view that a decision ends; null where this rank does not know it any more, or has never known it.
    const rill::view* ended_by(const agreement_decision& decision) const {
        for (const rill::view* const each : {&view_, &before_})
            if (each->epoch + 1 == decision.next.epoch) return each;
        return nullptr;
    }
    /// How many attempts this rank has seen, in all epochs.
    std::uint32_t ballots() const { return std::max(seen_, promised_.attempt); }
    /// Whether a member has ended, of which this rank has been told.
    bool has_dead_member() const {
        return std::any_of(members_.begin(), members_.end(), [](const member& each) { return each.has_ended; });
    }
    /// Whether a member is lost to this rank, or has ended.
    bool has_lost(rank_t rank) const {
        const member* const of = find(rank);
        return of != nullptr && of->is_lost;
    }
    /// Whether it knows newcomers whose seats are free.
    bool knows_newcomers() const {
        return std::any_of(joins_.begin(), joins_.end(), [&](const agreement_seat& seat) {
            const member* const holder = find(seat.rank);
            return holder == nullptr || holder->has_ended;
        });
    }
    /// Whether to pass on a message that a life of a rank has sent. Of this view only members are heard. A rank of
    /// another view may know a decision that this rank has not heard, or may lack one.
    bool hears(rank_t from, std::uint64_t life, const agreement_message& got) const {
        const bool is_for_all = got.kind == what::decide || got.kind == what::join || got.kind == what::hello;
        return is_for_all || is_member({from, life}) || got.epoch != view_.epoch;
    }
    /// When to call `tick` next, if nothing else happens; `deadline::never` while no agreement is under way.
    time_point wake() const { return is_frozen_ && !is_excluded_ ? wake_ : deadline::never.at; }
    /// Calls `visit` with each number that the next actions depend on.
    template <class Visit>
    void visit_state(Visit&& visit) const {
        const auto visit_ballot = [&](agreement_ballot at) { visit(at.attempt), visit(at.rank); };
        const auto visit_decision = [&](const agreement_decision& d) {
            visit(d.next.epoch), visit(d.step), visit(d.is_fruitless), visit(d.is_parted), visit(d.next.members.size());
            for (const rank_t rank : d.next.members) visit(rank);
            for (const std::uint64_t life : d.next.incarnations) visit(life);
            for (const rank_t rank : d.unheard) visit(rank);
            for (const rank_t rank : d.left) visit(rank + 1000);
        };
        for (const member& each : members_) {
            visit(each.is_lost), visit(each.has_ended), visit(each.has_answered), visit(each.has_accepted);
            if (!each.has_answered) continue;
            visit(each.said.prepared), visit(each.said.committed), visit(each.said.leaves);
            visit(each.said.lacks);
            visit_ballot(each.said.accepted_at), visit_decision(each.said.value);
            for (const rank_t rank : each.said.others) visit(rank);
            for (const rank_t rank : each.said.ended) visit(rank + 1000);
        }
        for (const agreement_seat& seat : joins_) visit(seat.rank), visit(seat.incarnation);
        for (const agreement_seat& seat : ended_) visit(seat.rank), visit(seat.incarnation);
        for (const agreement_seat& seat : lives_) visit(seat.rank), visit(seat.incarnation);
        for (const rank_t rank : silent_) visit(rank + 2000);
        visit_ballot(promised_), visit_ballot(hearsay_), visit_ballot(accepted_at_), visit_ballot(leads_);
        visit_decision(accepted_), visit_decision(last_), visit_decision(proposed_);
        for (const bool flag : {is_frozen_, is_excluded_, leaves_, lacks_, is_called_, proposes_}) visit(flag);
        for (const time_point time : {wake_, since_, frozen_since_}) visit(time.ns);
        visit(committed_), visit(prepared_), visit(base_), visit(seen_), visit(missing_.size()), visit(view_.epoch);
    }

  private:
    using what = agreement_message::what;
    struct member {
        agreement_seat seat{};
        bool is_lost = false;  ///< to this rank
        bool has_ended = false;
        bool has_answered = false;  ///< in this rank's ballot: `said`
        bool has_accepted = false;
        agreement_message said{};
    };

    void enter(rill::view next, std::uint64_t base) {
        before_ = std::exchange(view_, std::move(next));
        base_ = base;
        std::vector<member> before = std::move(members_);
        members_.clear();
        for (std::size_t i = 0; i < view_.members.size(); ++i) {
            const std::uint64_t life = i < view_.incarnations.size() ? view_.incarnations[i] : 0;
            const agreement_seat seat{view_.members[i], life};
            const auto known =
                std::find_if(before.begin(), before.end(), [&](const member& m) { return m.seat == seat; });
            const bool has_ended = std::find(ended_.begin(), ended_.end(), seat) != ended_.end();
            members_.push_back(
                {.seat = seat, .is_lost = has_ended || contains(silent_, seat.rank), .has_ended = has_ended});
            if (known == before.end()) continue;
            members_.back().is_lost |= known->is_lost;
            members_.back().has_ended |= known->has_ended;
        }
        // Also other lives, which have asked for the same seat: if they live, they ask again.
        std::erase_if(joins_, [&](const agreement_seat& seat) { return find(seat.rank) != nullptr; });
        promised_ = hearsay_ = accepted_at_ = leads_ = {};
        accepted_ = proposed_ = {};
        is_frozen_ = leaves_ = lacks_ = is_called_ = proposes_ = false;
        missing_.clear();
        const member* const own = find(self_);
        if (own != nullptr && life_ == 0) life_ = own->seat.incarnation;
        is_excluded_ = own == nullptr || own->seat.incarnation != life_;
    }

    const member* find(rank_t rank) const {
        const auto at = std::lower_bound(members_.begin(), members_.end(), rank,
                                         [](const member& m, rank_t r) { return m.seat.rank < r; });
        return at != members_.end() && at->seat.rank == rank ? &*at : nullptr;
    }
    member* find(rank_t rank) { return const_cast<member*>(std::as_const(*this).find(rank)); }
    bool is_member(const agreement_seat& seat) const {
        const member* const at = find(seat.rank);
        return at != nullptr && at->seat == seat;
    }

    // --- steps

    void prepare() {
        if (is_frozen_ || is_excluded_ || committed_ < base_) return;
        prepared_ = committed_ + 1;
        lacks_ = false;
    }
    void commit() {
        if (!is_frozen_ && prepared_ > committed_) committed_ = prepared_;
    }

    // --- events

    void end_view() {
        if (!is_frozen_) return freeze();
        missing_.clear();
        leads_ = {};
        frozen_since_ = wake_ = now_;
    }
    void freeze() {
        is_frozen_ = true;
        frozen_since_ = since_ = wake_ = now_;
    }
    void join(agreement_seat seat) {
        if (is_member(seat) || std::find(ended_.begin(), ended_.end(), seat) != ended_.end()) return;
        std::erase_if(joins_, [&](const agreement_seat& other) { return other.rank == seat.rank; });
        joins_.insert(std::upper_bound(joins_.begin(), joins_.end(), seat), seat);
    }
    void change(rank_t rank, peer_change change, std::uint64_t life) {
        if (change == peer_change::ended) end({rank, life});
        if (change == peer_change::arrived) {
            // The life before has ended. A view that this rank enters later may still list it.
            const auto before =
                std::find_if(lives_.begin(), lives_.end(), [&](auto& each) { return each.rank == rank; });
            if (before == lives_.end())
                lives_.push_back({rank, life});
            else if (before->incarnation != life)
                end(std::exchange(*before, {rank, life}));
        }
        std::erase(silent_, rank);
        if (change == peer_change::silent) silent_.push_back(rank);
        member* const at = find(rank);
        if (at == nullptr) return;
        const bool is_this_life = at->seat.incarnation == 0 || at->seat.incarnation == life;
        if (change == peer_change::arrived) at->has_ended |= !is_this_life;
        if (change == peer_change::ended) at->has_ended |= is_this_life;
        if (change == peer_change::silent) at->is_lost = true;
        if (change == peer_change::recovered) at->is_lost = at->has_ended;
        at->is_lost |= at->has_ended;
        hurry();
        if (leads_.attempt != 0 && at->has_answered && !at->has_accepted && is_uncountable(*at)) begin_ballot();
    }

    void end(agreement_seat seat) {
        std::erase(joins_, seat);
        if (std::find(ended_.begin(), ended_.end(), seat) == ended_.end()) ended_.push_back(seat);
    }

    /// A quorum without a majority needs each counted answer to name every end (or every lost member). One that has
    /// ended (or is lost) cannot, so it must not be counted.
    bool is_uncountable(const member& of) const {
        if (policy_ == quorum::majority) return false;
        return policy_ == quorum::refused ? of.has_ended : of.is_lost;
    }

    void take(rank_t from, const agreement_message& got) {
        if (got.kind == what::finished) return;
        if (got.kind == what::hello) return send(from, whole_decision());
        if (got.kind == what::join) {
            if (got.joins.empty()) return;
            if (!is_member(got.joins.front())) return join(got.joins.front());
            return send(from, whole_decision());  // it has been taken in and has not heard it
        }
        if (got.epoch < view_.epoch) {
            if (got.kind != what::decide) send(from, whole_decision());
            return;
        }
        const bool is_read = got.view_is != agreement_message::form::unread;
        if (got.kind == what::decide && is_read) return decided(got.value);
        if (got.epoch > view_.epoch) return send(from, plain(what::call));  // it answers by what it knows
        if (!is_read) return;
        if (is_excluded_ || contains(fenced_, from)) return;
        member* const at = find(from);
        if (at == nullptr) return;
        if (!is_frozen_) freeze();
        at->is_lost = at->has_ended;  // it is heard
        std::erase(silent_, from);
        if (got.kind == what::call) is_called_ = true, hurry();
        if (got.kind == what::collect) answer(from, got);
        if (got.kind == what::propose) accept(from, got);
        if (got.kind == what::refuse && give_way(got.at)) promised_ = hearsay_ = got.at;
        if (got.kind == what::no_quorum && leads_.attempt == 0) missing_ = got.others;
        if (got.at != leads_ || leads_.attempt == 0) return;
        if (got.kind == what::answer && !proposes_) {
            at->has_answered = true;
            at->said = got;
            for (const agreement_seat& seat : got.joins) join(seat);
        }
        if (got.kind == what::accepted && proposes_) at->has_accepted = true;
    }
    /// Looks for a coordinator now, unless this rank is it.
    void hurry() {
        if (leads_.attempt == 0) wake_ = now_;
    }

    void answer(rank_t coordinator, const agreement_message& got) {
        if (got.at < promised_) return refuse(coordinator);
        if (got.at > promised_ && leads_.attempt != 0) give_way(got.at);
        promised_ = got.at;
        hearsay_ = {};
        since_ = now_;
        missing_.clear();
        for (const rank_t rank : got.others)
            if (rank != self_) probe(rank);
        send(coordinator, own_answer());
    }
    agreement_message own_answer() const {
        agreement_message own = plain(what::answer);
        own.at = promised_;
        own.accepted_at = accepted_at_;
        own.value = accepted_;
        own.prepared = std::max(prepared_, base_);
        own.committed = std::max(committed_, base_);
        own.leaves = leaves_;
        own.lacks = lacks_;
        own.joins = joins_;
        for (const member& each : members_) {
            if (each.is_lost) own.others.push_back(each.seat.rank);
            if (each.has_ended) own.ended.push_back(each.seat.rank);
        }
        return own;
    }

    void accept(rank_t coordinator, const agreement_message& got) {
        if (got.at < promised_) return refuse(coordinator);
        if (got.at > promised_ && leads_.attempt != 0) give_way(got.at);
        promised_ = accepted_at_ = got.at;
        hearsay_ = {};
        accepted_ = got.value;
        since_ = now_;
        fence_excluded(got.value.next);
        agreement_message yes = plain(what::accepted);
        yes.at = got.at;
        send(coordinator, yes);
    }
    void fence_excluded(const rill::view& next) {
        if (policy_ != quorum::refused) return;
        for (const member& each : members_) {
            if (!each.has_ended || next.contains(each.seat.rank) || contains(fenced_, each.seat.rank)) continue;
            fenced_.push_back(each.seat.rank);
            actions_.push_back({agreement_action::ask::fence, each.seat.rank, each.seat.incarnation, {}});
        }
    }

    void refuse(rank_t to) {
        agreement_message no = plain(what::refuse);
        no.at = promised_;
        send(to, no);
    }
    /// Another coordinator has a higher ballot. Returns whether this rank has led, and does no longer.
    bool give_way(agreement_ballot to) {
        seen_ = std::max(seen_, to.attempt);
        if (leads_.attempt == 0 || to < leads_) return false;
        leads_ = {};
        since_ = now_;
        wake_ = now_ + limits_.repeat;
        return true;
    }

    void decided(const agreement_decision& value) {
        if (value.next.epoch <= view_.epoch) return;
        if (is_excluded_ && !value.next.contains(self_)) return;
        last_ = value;
        for (const rank_t rank : value.unheard)
            if (rank != self_) send(rank, decision_message());
        fenced_.clear();
        // What this rank has prepared in an earlier view may have been repeated since.
        const bool is_of_this_view = value.next.epoch == view_.epoch + 1;
        const std::uint64_t held = lacks_ ? committed_ : prepared_;
        if (is_of_this_view && held >= value.step) committed_ = std::max(committed_, value.step);
        prepared_ = committed_;
        enter(value.next, value.step);
    }

    // --- the coordinator

    rank_t coordinator() const {
        for (const member& each : members_)
            if (each.seat.rank == self_ || !each.is_lost) return each.seat.rank;
        return self_;
    }

    /// Whether the ballot of another coordinator is under way. Two coordinators that are cut off from each other would
    /// take each other's ballots away without end: whoever hears of a higher one leaves it the time to decide.
    bool is_led() const {
        const member* const by = promised_.attempt != 0 ? find(promised_.rank) : nullptr;
        if (by == nullptr || by->seat.rank == self_) return false;
        if (promised_ == hearsay_) return !by->has_ended && now_ < since_ + limits_.patience + limits_.repeat * 2;
        return !by->is_lost && now_ < since_ + limits_.patience * 2;
    }

    void proceed() {
        if (!is_frozen_ || is_excluded_) return;
        if (leads_.attempt != 0) advance();
        if (!is_frozen_ || now_ < wake_) return;
        wake_ = now_ + limits_.repeat;
        if (leads_.attempt != 0) return proposes_ ? send_proposal() : ask();
        const rank_t first = coordinator();
        const bool has_leader = is_led();
        if (!has_leader && (first == self_ || is_called_)) return begin_ballot();
        if (first != self_) {
            send(first, plain(what::call));
            probe(first);
        }
        if (has_leader && promised_.rank != first) probe(promised_.rank);
        if (now_ >= frozen_since_ + limits_.longest && missing_.empty())
            missing_ = {has_leader ? promised_.rank : first};
    }

    void begin_ballot() {
        is_called_ = proposes_ = false;
        seen_ = std::max(seen_, promised_.attempt) + 1;
        leads_ = promised_ = {seen_, self_};
        since_ = now_;
        wake_ = now_ + limits_.repeat;
        for (member& each : members_) each.has_answered = each.has_accepted = false;
        member& own = *find(self_);
        own.has_answered = true;
        own.said = own_answer();
        ask();
        advance();
    }
    /// Goes on where the answers allow it.
    void advance() {
        if (!proposes_) {
            find(self_)->said = own_answer();
            if (may_propose()) propose();
        }
        if (!proposes_) return;
        if (is_quorum(&member::has_accepted)) return decide();
        if (now_ >= since_ + limits_.patience) begin_ballot();
    }
    void send_proposal() {
        agreement_message proposal = plain(what::propose);
        proposal.at = leads_;
        proposal.value = proposed_;
        for (const member& each : members_)
            if (!each.has_accepted) send(each.seat.rank, proposal);
    }
    void ask() {
        agreement_message question = plain(what::collect);
        question.at = leads_;
        const bool is_first = now_ == since_;
        std::vector<rank_t> silent;
        for (const member& each : members_)
            if (!each.has_answered) silent.push_back(each.seat.rank);
        if (!is_first) question.others = silent;
        for (const member& each : members_) {
            if (each.seat.rank == self_) continue;
            send(each.seat.rank, question);
            if (!each.has_answered) probe(each.seat.rank);
        }
        const bool all_others_lost =
            std::all_of(members_.begin(), members_.end(), [](const member& m) { return m.has_answered || m.is_lost; });
        const time_point until = all_others_lost ? since_ + limits_.patience : frozen_since_ + limits_.longest;
        if (now_ < until || is_quorum(&member::has_answered)) return;
        missing_ = silent;
        agreement_message none = plain(what::no_quorum);
        none.others = missing_;
        for (const member& each : members_)
            if (each.has_answered && each.seat.rank != self_) send(each.seat.rank, none);
    }

    /// A quorum has answered, and all others are lost to all that have, or `patience` has passed. Where members that
    /// have answered are newly lost to each other, they get this time to hear each other again.
    bool may_propose() const {
        if (!is_quorum(&member::has_answered)) return false;
        if (now_ >= since_ + limits_.patience) return true;
        return (last_.is_parted || !is_parted()) && std::all_of(members_.begin(), members_.end(), [&](const member& m) {
                   return m.has_answered || is_gone(m.seat.rank);
               });
    }
    /// Whether a member that stays is lost to one that has answered.
    bool is_parted() const {
        return std::any_of(members_.begin(), members_.end(), [&](const member& by) {
            return by.has_answered && std::any_of(by.said.others.begin(), by.said.others.end(),
                                                  [&](rank_t rank) { return !has_left(rank); });
        });
    }
    bool has_left(rank_t rank) const {
        const member* const of = find(rank);
        const bool has_ended = std::any_of(members_.begin(), members_.end(), [&](const member& by) {
            return by.has_answered && contains(by.said.ended, rank);
        });
        return of == nullptr || has_ended || (of->has_answered ? of->said.leaves : is_gone(rank));
    }
    /// Whether a member that has not answered has ended, or is lost to all that have.
    bool is_gone(rank_t rank) const {
        bool by_all = true;
        for (const member& each : members_) {
            if (!each.has_answered) continue;
            if (contains(each.said.ended, rank)) return true;
            by_all &= contains(each.said.others, rank);
        }
        return by_all;
    }
    bool is_quorum(bool member::*says) const {
        const auto yes = static_cast<std::size_t>(
            std::count_if(members_.begin(), members_.end(), [&](const member& m) { return m.*says; }));
        if (2 * yes > members_.size()) return true;
        if (2 * yes == members_.size() && members_.front().*says) return true;
        if (policy_ == quorum::majority) return false;
        return std::all_of(members_.begin(), members_.end(), [&](const member& m) {
            if (m.*says) return true;
            return std::all_of(members_.begin(), members_.end(), [&](const member& by) {
                const auto& lost = policy_ == quorum::refused ? by.said.ended : by.said.others;
                return !(by.*says) || contains(lost, m.seat.rank);
            });
        });
    }

    void propose() {
        proposes_ = true;
        since_ = now_;
        missing_.clear();
        const member* latest = nullptr;
        for (const member& each : members_)
            if (each.has_answered && each.said.accepted_at.attempt != 0 &&
                (latest == nullptr || each.said.accepted_at > latest->said.accepted_at))
                latest = &each;
        proposed_ = latest != nullptr ? latest->said.value : value_of_answers();
        accepted_at_ = leads_;
        accepted_ = proposed_;
        fence_excluded(proposed_.next);
        find(self_)->has_accepted = true;
        wake_ = now_ + limits_.repeat;
        send_proposal();
    }
    agreement_decision value_of_answers() const {
        agreement_decision made{.next = {.epoch = view_.epoch + 1}, .step = std::max(prepared_, base_)};
        std::uint64_t most = 0;
        std::vector<agreement_seat> seats;
        for (const member& each : members_) {
            if (each.has_answered) {
                made.step = std::min(made.step, each.said.prepared);
                most = std::max(most, each.said.committed);
            }
            const bool stays = each.has_answered ? !each.said.leaves : !is_gone(each.seat.rank);
            if (stays) seats.push_back(each.seat);
            if (each.has_answered && each.said.leaves) made.left.push_back(each.seat.rank);
            if (stays && !each.has_answered) made.unheard.push_back(each.seat.rank);
        }
        // Whoever has committed a step has told so, or has ended: what all that are left have given up is repeated.
        if (is_given_up(made.step)) made.step = most;
        made.is_fruitless = seats.size() == members_.size() && !knows_newcomers() && made.step == most;
        made.is_parted = is_parted();
        for (const agreement_seat& seat : joins_)
            if (std::none_of(seats.begin(), seats.end(), [&](const agreement_seat& s) { return s.rank == seat.rank; }))
                seats.insert(std::upper_bound(seats.begin(), seats.end(), seat), seat);
        for (const agreement_seat& seat : seats) {
            made.next.members.push_back(seat.rank);
            made.next.incarnations.push_back(seat.incarnation);
        }
        return made;
    }
    /// Whether nobody has the result of a step: all members that have not ended have answered, and lack it.
    bool is_given_up(std::uint64_t step) const {
        return std::all_of(members_.begin(), members_.end(), [&](const member& each) {
            if (each.has_answered) return each.said.lacks && each.said.committed < step;
            return std::any_of(members_.begin(), members_.end(), [&](const member& by) {
                return by.has_answered && contains(by.said.ended, each.seat.rank);
            });
        });
    }
    void decide() {
        std::vector<rank_t> hearers = view_.members;
        for (const rank_t rank : proposed_.next.members)
            if (!view_.contains(rank)) hearers.push_back(rank);
        const agreement_decision value = proposed_;
        decided(value);
        for (const rank_t rank : hearers)
            if (rank != self_ && !contains(value.unheard, rank))
                send(rank, comes_in(rank) ? whole_decision() : decision_message());
    }
    /// By the last decision: it does not know the view that this has ended.
    bool comes_in(rank_t rank) const {
        return last_.next.contains(rank) && !lists(before_, rank, life_in(last_.next, rank));
    }

    // --- messages

    agreement_message plain(what kind) const {
        agreement_message made;
        made.kind = kind;
        made.epoch = view_.epoch;
        return made;
    }
    /// It has the epoch of the view that it begins.
    agreement_message decision_message() const {
        agreement_message made;
        made.kind = what::decide;
        made.epoch = last_.next.epoch;
        made.value = last_;
        return made;
    }
    agreement_message whole_decision() const {
        agreement_message made = decision_message();
        made.view_is = agreement_message::form::whole;
        return made;
    }
    void send(rank_t to, const agreement_message& message) {
        actions_.push_back({agreement_action::ask::send, to, 0, message});
    }
    void probe(rank_t rank) { actions_.push_back({agreement_action::ask::probe, rank, 0, {}}); }

    rank_t self_;
    std::uint64_t life_ = 0;  ///< its incarnation
    quorum policy_;
    agreement_limits limits_;
    std::uint64_t committed_;  ///< the last step that this rank has committed
    std::uint64_t prepared_;   ///< that, or the step after it
    agreement_decision last_;
    rill::view view_{}, before_{};
    std::uint64_t base_ = 0;
    std::vector<member> members_{};
    std::vector<agreement_seat> joins_{};  ///< newcomers that ask to be taken in, ascending
    std::vector<agreement_seat> ended_{};  ///< lives that have ended
    std::vector<agreement_seat> lives_{};  ///< the latest life that has arrived, one for each rank
    std::vector<rank_t> silent_{};         ///< as the transport has told; also ranks that are no members yet
    std::vector<rank_t> fenced_{};
    agreement_ballot promised_{};     ///< the highest ballot that this rank has answered, or given way to
    agreement_ballot hearsay_{};      ///< a ballot that it has given way to because others have answered it
    agreement_ballot accepted_at_{};  ///< the ballot of `accepted_`
    agreement_ballot leads_{};        ///< its own ballot, while it is the coordinator
    agreement_decision accepted_{};
    agreement_decision proposed_{};
    std::uint32_t seen_ = 0;  ///< the highest attempt
    bool is_frozen_ = false;
    bool is_excluded_ = false;
    bool leaves_ = false;
    bool lacks_ = false;  ///< what it has prepared and not committed
    bool is_called_ = false;
    bool proposes_ = false;
    time_point now_{}, wake_{}, since_{}, frozen_since_{};
    std::vector<rank_t> missing_{};
    actions actions_{};
};

}}}  // namespace rill::RILL_ABI::detail
