#pragma once

#include <rill/concept/completion.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/round_children.hpp>
#include <rill/protocol/detail/round_kind.hpp>
#include <rill/protocol/detail/round_state.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A contribution that a parent has taken.
template <class Message>
struct round_arrival {
    rank_t rank = no_rank;
    int child = 0;
    std::uint64_t round = 0;
    std::uint32_t age = 0;  ///< rounds by which it came late
    Message message;
};

/// The policies of rounds: a completion, a staleness and a trigger.
template <class Enough, class Age, class Start>
struct round_policies {
    [[no_unique_address]] Enough enough;
    [[no_unique_address]] Age age;
    [[no_unique_address]] Start start;
};

/// One rank's links to its parent and its children in a tree. States go down over them and contributions up, round by
/// round.
///
/// A child is given a state only when it has answered the one before, so that no link ever holds more than one message
/// each way. A rank that is late meets the newest state, and a rank that has died costs nothing. Each frame carries the
/// number of its round, which shows whether it came twice or belongs to a round that has ended. A child that has missed
/// a round is told that the round is over, so that it need not gather or send what nobody wants. A state also says from
/// which round the parent has the child's latest contribution, and whether that is in a result.
template <Transport Net, class Tree, class Policies>
class round_links {
  public:
    using message = typename Net::message;
    using arrival = round_arrival<message>;

    round_links(Net& net, const Tree& tree, Policies policies, random_key key, duration timeout)
        : session_(net, "rounds", timeout, session_kind::open),
          policies_(std::move(policies)),
          key_(key),
          parent_(tree.parent(net.size(), net.rank())),
          height_(tree.height(net.size(), net.rank())) {
        for (int i = 0; i < tree.children(net.size(), net.rank()); ++i)
            children_.add(tree.child(net.size(), net.rank(), i));
        neighbours_ = children_.ranks();
        if (parent_ != no_rank) neighbours_.push_back(parent_);
    }

    session<Net>& of() { return session_; }
    const session<Net>& of() const { return session_; }
    Net& net() const { return session_.net(); }
    /// This rank's place in the round under way, for messages.
    [[gnu::cold]] detail::scene scene() const { return session_.scene(round_, 0, "round " + std::to_string(round_)); }
    std::uint64_t context() const { return session_.context(); }
    bool is_root() const { return parent_ == no_rank; }
    rank_t parent() const { return parent_; }  ///< `no_rank` for the root
    bool is_leaf() const { return children_.empty(); }
    bool has_ended() const { return has_ended_; }
    std::uint64_t round() const { return round_; }
    /// Whether this rank's latest contribution is in a result of the root, as far as is known.
    bool was_in() const { return is_root() || was_in_; }
    time_point began() const { return began_; }
    const traffic& counted() const { return counted_; }

    /// At the root: begins the next round once enough children are ready.
    void begin(const wire::header& head, byte_view values) {
        begin_round(round_ + 1);
        state_.borrow(head, values);
        absorb();
        await_trigger();
        give_state();
        if (!children_.all_have(round_)) state_.keep();
    }

    /// On other ranks than the root: waits for the newest state, and returns null when rounds have ended. The state's
    /// header has been checked, its content has not. It stays valid until the next one.
    const message* take_newest() {
        const time_point entered = net().now(), half = entered + session_.timeout() / 2;
        while (true) {
            auto newest = receive_state(half);
            if (!newest) {
                tell(parent_);
                newest = receive_state(entered + session_.timeout());
                if (!newest) gave_nothing();
                session_.announce({});
            }
            const wire::header head = state_of(*newest);
            if (head.kind != round_kind::end_rounds && head.number <= round_) continue;  // it came twice
            learn_fates(head);
            if (head.kind == round_kind::end_rounds) {
                end(session_.timeout());
                return nullptr;
            }
            begin_round(head.number);
            const message& held = state_.hold(head, std::move(*newest));
            absorb();
            give_state();
            return &held;
        }
    }

    /// Whether nobody waits any more for this rank's contribution to the round under way.
    bool is_over() {
        if (is_root()) return false;
        while (!end_) {
            auto got = net().receive(parent_, on_links(), deadline::immediate);
            if (!got) break;
            hear(std::move(*got));
        }
        return end_ || over_ >= round_;
    }

    /// Gathers contributions until there are enough or the round is over, and returns them by rank and round. Late ones
    /// that still count are among them.
    std::span<arrival> gather() {
        const time_point time_up = began_ + policies_.enough.patience(height_);
        take_until([&] { return end_ || over_ >= round_ || is_complete(time_up); }, time_up, true);
        for (child& each : children_) {
            if (each.is_ready() || each.missed_since) continue;
            each.missed_since = net().now();
            if (!policies_.age.accepts(1)) give(each, round_kind::round_over, deadline::immediate);
        }
        std::sort(arrivals_.begin(), arrivals_.end(), [](const arrival& a, const arrival& b) {
            return std::pair(a.rank, a.round) < std::pair(b.rank, b.round);
        });
        return arrivals_;
    }

    /// Children that are still at work, and so have contributed nothing to this round.
    std::vector<rank_t> missing() const { return children_.at_work(); }

    /// The latecomers since the last call.
    std::vector<latecomer> latecomers() { return std::exchange(late_, {}); }

    /// Releases what was gathered.
    void forget_arrivals() { arrivals_.clear(); }

    /// Hands a contribution to the parent.
    void hand_up(buffer&& bytes) {
        const std::size_t size = bytes.size();
        answered_ = round_;
        was_in_ = false;
        if (!net().post(parent_, on_links(), std::move(bytes), net().now() + session_.timeout()))
            throw_error(session_.waited_in_vain(scene(), parent_, ", whose mailbox is full"));
        counted_.sent(size);
    }

    /// Tells all ranks below that there are no more rounds. Waits at most `at_most` for room in their mailboxes.
    void end(duration at_most) {
        has_ended_ = true;
        give_each(round_kind::end_rounds, at_most, [](const child&) { return true; });
    }

  private:
    using child = round_children::link;
    using fate = contribution_fate;

    void tell(rank_t waits_for) { session_.announce(long_wait::of_any_order(waits_for)); }
    [[noreturn, gnu::cold]] void gave_nothing() const {
        const auto next = session_.scene(round_ + 1, 0, "round " + std::to_string(round_ + 1));
        throw_error(session_.waited_in_vain(next, parent_, ", which gives no state"));
    }

    /// One channel for both ways, so that a rank that waits for its parent also takes what its children send.
    channel on_links() const { return session_.on(0); }

    void begin_round(std::uint64_t round) {
        round_ = round;
        began_ = net().now();
        counted_ = {};
        arrivals_.clear();
        children_.begin_round();
    }

    /// Gives the state to every child that has answered the last one.
    void give_state() {
        give_each(round_kind::next_round, session_.timeout(), [](const child& each) { return each.is_ready(); });
    }

    /// Sends to those first whose mailboxes have room: a full mailbox delays nobody else.
    template <class Which>
    void give_each(message_kind kind, duration at_most, Which&& is_meant) {
        std::vector<child*> refused;
        for (child& each : children_)
            if (is_meant(each) && !give(each, kind, deadline::immediate)) refused.push_back(&each);
        const time_point until = net().now() + at_most;
        if (at_most.ns > 0)
            for (child* const each : refused) give(*each, kind, until);
    }

    /// Sends one message to a child and returns whether there was room for it.
    bool give(child& to, message_kind kind, deadline until) {
        buffer bytes = state_.frame(kind, session_, round_, to);
        const std::size_t size = bytes.size();
        if (!net().post(to.rank, on_links(), std::move(bytes), until)) return false;
        counted_.sent(size);
        if (kind != round_kind::next_round) return true;
        to.given = round_;
        to.missed_since.reset();
        return true;
    }

    /// Takes a message of the parent while this rank does not wait for a state.
    void hear(message&& got) {
        counted_.received(got.pieces().size_bytes());
        const wire::header head = state_of(got);
        if (head.kind == round_kind::end_rounds) end_ = std::move(got);
        if (head.kind == round_kind::round_over) over_ = std::max(over_, head.number);
    }

    /// Waits for a message of the parent that begins or ends rounds. What children send meanwhile is kept for later, so
    /// that it does not fill the mailbox.
    std::optional<message> receive_state(deadline until) {
        if (end_) return std::exchange(end_, std::nullopt);
        while (auto got = net().receive(neighbours_, on_links(), until)) {
            if (got->source() != parent_) {
                early_.push_back(std::move(*got));
                continue;
            }
            counted_.received(got->pieces().size_bytes());
            if (state_of(*got).kind != round_kind::round_over) return got;
        }
        return std::nullopt;
    }

    wire::header state_of(const message& newest) {
        return read_from(*this, parent_, [&] {
            const wire::header head = frame_reader(newest.pieces()).peek();
            session_.require_own(head);
            wire::detail::require(head.kind == round_kind::next_round || head.kind == round_kind::end_rounds ||
                                      head.kind == round_kind::round_over,
                                  "nothing that a parent says");
            return head;
        });
    }

    /// Learns what became of this rank's latest contribution, and so of the children's contributions in it.
    void learn_fates(const wire::header& head) {
        was_in_ = head.contributors != 0 && answered_ != 0 && head.number - head.age == answered_;
        children_.learn_fate(was_in_);
    }

    /// Takes what has come since the last round ended.
    void absorb() {
        if (is_leaf()) return;
        for (message& each : early_) take(std::move(each), false);
        early_.clear();
        while (auto got = net().receive(children_.ranks(), on_links(), deadline::immediate))
            take(std::move(*got), false);
    }

    void await_trigger() {
        const auto starts = [&] {
            return policies_.start.starts(children_.ready_with(net().rank()), children_.count() + 1,
                                          key_.derive(round_));
        };
        take_until(starts, deadline::never.at, false);
    }

    /// Takes what comes until `is_enough()`, which may also become true at `when`. Gives up when the timeout has
    /// passed.
    template <class Enough>
    void take_until(Enough&& is_enough, time_point when, bool gives_state) {
        const time_point entered = net().now();
        const time_point half = entered + session_.timeout() / 2, last = entered + session_.timeout();
        rank_t told = no_rank;
        while (!is_enough()) {
            const time_point now = net().now();
            if (now >= last) give_up();
            if (const rank_t first = children_.first_missing(round_); now >= half && first != told) tell(told = first);
            auto got = net().receive(neighbours_, on_links(),
                                     std::min({now < when ? when : last, now < half ? half : last, last}));
            if (!got) continue;
            if (got->source() == parent_)
                hear(std::move(*got));
            else
                take(std::move(*got), gives_state);
        }
        if (told != no_rank) session_.announce({});
    }

    bool is_complete(time_point time_up) {
        for (const child& each : children_)
            if (!each.is_ready() && !policies_.age.may_lead(static_cast<std::uint32_t>(round_ - each.given)))
                return false;
        return policies_.enough.is_complete(
            {.expected = children_.count(), .in = children_.in(), .time_is_up = !is_leaf() && net().now() >= time_up});
    }

    void take(message&& got, bool gives_state) {
        counted_.received(got.pieces().size_bytes());
        const rank_t source = got.source();
        const wire::header head = read_from(*this, source, [&] {
            const wire::header h = frame_reader(got.pieces()).peek();
            session_.require_own(h);
            wire::detail::require(h.kind == round_kind::contribute, "no contribution");
            return h;
        });
        child& from = children_.of(source);
        if (head.number <= from.answered) return;  // it came twice
        if (head.number != from.given)
            scene().refuse(source,
                           "contributes to round " + std::to_string(head.number) + ", which it has not been given");
        const auto age = static_cast<std::uint32_t>(round_ - head.number);
        const fate becomes = fate_of(age);
        children_.answers(from, head.number, becomes);
        if (age != 0) late_.push_back({source, age, from.missed_since ? net().now() - *from.missed_since : duration{}});
        if (becomes != fate::out)
            arrivals_.push_back({source, children_.number_of(from), head.number, age, std::move(got)});
        if (age != 0 && gives_state) give(from, round_kind::next_round, net().now() + session_.timeout());
    }
    fate fate_of(std::uint32_t age) const {
        if (age == 0) return is_root() ? fate::in : fate::with_mine;
        return policies_.age.accepts(age) || !policies_.age.may_lead(age) ? fate::in : fate::out;
    }

    /// Too few contributions have come. The root fails for all ranks, which cannot go on without it; another rank fails
    /// alone, because the others may go on.
    [[noreturn, gnu::cold]] void give_up() {
        std::string in;
        for (const int number : children_.in())
            in += (in.empty() ? "" : ", ") + std::to_string(children_.ranks()[static_cast<std::size_t>(number)]);
        const abort_notice notice =
            session_.waited_in_vain(scene(), children_.first_missing(round_), "",
                                    "; rank " + std::to_string(net().rank()) + " has contributions of " +
                                        (in.empty() ? "no child" : "its children " + in) + ", which is not enough");
        throw_error(is_root() ? net().abort(notice) : notice);
    }

    session<Net> session_;
    Policies policies_;
    random_key key_;
    rank_t parent_;
    int height_;
    round_children children_;
    std::vector<rank_t> neighbours_;  // children and parent
    round_state<message> state_;
    std::uint64_t round_ = 0;
    std::uint64_t answered_ = 0;
    std::uint64_t over_ = 0;  // the latest round that is over, as the parent has said
    bool was_in_ = false;
    bool has_ended_ = false;
    time_point began_{};
    traffic counted_{};
    std::optional<message> end_;  // ends the rounds; it came while this rank did not wait for a state
    std::vector<message> early_;  // contributions that came while this rank waited for a state
    std::vector<arrival> arrivals_;
    std::vector<latecomer> late_;
};

}}}  // namespace rill::RILL_ABI::detail
