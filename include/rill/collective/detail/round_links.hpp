#pragma once

#include <rill/collective/detail/membership.hpp>
#include <rill/collective/detail/round_blame.hpp>
#include <rill/concept/aggregation_tree.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
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

namespace rill::inline RILL_ABI::detail {

/// A contribution as a parent took it.
template <class Message>
struct round_arrival {
    rank_t rank = no_rank;
    int child = 0;
    std::uint64_t round = 0;
    std::uint32_t age = 0;  ///< rounds by which it came late
    Message message;
};

/// What a completion, a staleness and a trigger are of.
template <class Enough, class Age, class Start>
struct round_policies {
    [[no_unique_address]] Enough enough;
    [[no_unique_address]] Age age;
    [[no_unique_address]] Start start;
};

/// One rank's links to its parent and its children in a tree, over which states go down and contributions up, round by
/// round.
///
/// A child is given a state only when it has answered the one before, so that no link ever holds more than one message
/// each way: whoever is late meets the newest state, and whoever has died costs nothing. A frame says its round; what
/// comes twice, or to a round that has ended, is known by that. A child that has missed a round hears that it is over,
/// so that it need not send, nor gather, what nobody wants. A state also says of which round the parent has the child's
/// latest contribution, and whether that is in a result.
template <Transport Net, class Tree, class Policies>
class round_links {
  public:
    using message = typename Net::message;
    using arrival = round_arrival<message>;

    round_links(Net& net, const Tree& tree, Policies policies, random_key key, duration patience)
        : context_(net),
          waits_(net),
          policies_(std::move(policies)),
          key_(key),
          blame_(net, context_.number, waits_.number, patience),
          parent_(tree.parent(net.size(), net.rank())),
          height_(tree.height(net.size(), net.rank())) {
        for (int i = 0; i < tree.children(net.size(), net.rank()); ++i) {
            children_.push_back(tree.child(net.size(), net.rank(), i));
            links_.push_back({});
        }
        neighbours_ = children_;
        if (parent_ != no_rank) neighbours_.push_back(parent_);
    }

    Net& net() const { return context_.net; }
    std::uint64_t context() const { return context_.number; }
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
        state_head_ = head;
        state_ = byte_pieces(values);
        absorb();
        await_trigger();
        give_state();
        keep_state_for_latecomers();
    }

    /// Elsewhere: the newest state, or nothing when rounds have ended. Its frame is valid, its content not looked at.
    /// It stays until the next one.
    const message* take_newest() {
        const time_point entered = net().now(), half = entered + blame_.patience() / 2;
        while (true) {
            auto newest = receive_state(half);
            if (!newest) {
                blame_.tell(parent_);
                newest = receive_state(entered + blame_.patience());
                if (!newest) throw_error(blame_.notice(round_ + 1, parent_, ", which gives no state"));
                blame_.tell_nothing();
            }
            const wire::header head = state_of(*newest);
            if (head.kind != operation::end_rounds && head.epoch <= round_) continue;  // it came twice
            learn_fates(head);
            if (head.kind == operation::end_rounds) {
                end(blame_.patience());
                return nullptr;
            }
            begin_round(head.epoch);
            state_head_ = head;
            state_message_ = std::move(newest);
            state_ = content_behind_header(state_message_->pieces());
            absorb();
            give_state();
            return &*state_message_;
        }
    }

    /// Whether nobody waits for this rank's contribution to the round under way any more.
    bool is_over() {
        if (is_root()) return false;
        while (!end_) {
            auto got = net().receive(parent_, on_links(), deadline::immediate);
            if (!got) break;
            hear(std::move(*got));
        }
        return end_ || over_ >= round_;
    }

    /// Contributions until there are enough, or the round is over, by rank and round; late ones that still count among
    /// them.
    std::span<arrival> gather() {
        const time_point time_up = began_ + policies_.enough.patience(height_);
        take_until([&] { return end_ || over_ >= round_ || is_complete(time_up); }, time_up, true);
        for (std::size_t i = 0; i < links_.size(); ++i) {
            if (links_[i].is_ready() || links_[i].missed_since) continue;
            links_[i].missed_since = net().now();
            if (!policies_.age.accepts(1)) give(i, operation::round_over, deadline::immediate);
        }
        std::sort(arrivals_.begin(), arrivals_.end(), [](const arrival& a, const arrival& b) {
            return std::pair(a.rank, a.round) < std::pair(b.rank, b.round);
        });
        return arrivals_;
    }

    /// Children from which this round has nothing and which are still at work.
    std::vector<rank_t> missing() const {
        std::vector<rank_t> ranks;
        for (std::size_t i = 0; i < links_.size(); ++i)
            if (!links_[i].is_ready()) ranks.push_back(children_[i]);
        return ranks;
    }

    /// Who came late since this was asked last.
    std::vector<latecomer> latecomers() { return std::exchange(late_, {}); }

    /// Releases what was gathered.
    void forget_arrivals() { arrivals_.clear(); }

    /// Hands a contribution to the parent.
    void hand_up(buffer&& bytes) {
        const std::size_t size = bytes.size();
        answered_ = round_;
        was_in_ = false;
        if (!net().post(parent_, on_links(), std::move(bytes), net().now() + blame_.patience()))
            throw_error(blame_.notice(round_, parent_, ", whose mailbox is full"));
        count_sent(size);
    }

    /// Tells all ranks below that there are no more rounds. Waits `at_most` for room in their mailboxes.
    void end(duration at_most) {
        has_ended_ = true;
        give_each(operation::end_rounds, at_most, [](const link_state&) { return true; });
    }
    duration patience() const { return blame_.patience(); }

    /// A failure of this rank's, or of a child's, with which nobody can go on: all ranks learn of it.
    [[noreturn]] void fail(failure kind, rank_t culprit, const std::string& what) {
        throw_error(net().abort({.context = context(),
                                 .operation = round_,
                                 .kind = kind,
                                 .culprit = culprit,
                                 .reason = "round " + std::to_string(round_) + ": " + what}));
    }

    /// Runs `from()`, which reads what `source` sent: what is wrong there is that rank's failure.
    template <class Read>
    auto read(rank_t source, Read&& from) {
        try {
            return from();
        } catch (const protocol_error& e) {
            if (e.culprit() != no_rank) throw;
            fail(failure::protocol, source,
                 "rank " + std::to_string(source) + " sent bytes that are no valid frame: " + e.notice().reason);
        }
    }

  private:
    enum class fate : unsigned char { out, with_mine, in };

    struct link_state {
        std::uint64_t given = 0;     // the round of the latest state
        std::uint64_t answered = 0;  // the round of the latest contribution
        fate latest = fate::out;     // of that contribution
        std::optional<time_point> missed_since{};

        bool is_ready() const { return given == answered; }
    };

    /// One for both ways: a rank that waits for its parent takes what its children send, too.
    channel on_links() const { return {context_.number, 0}; }

    void begin_round(std::uint64_t round) {
        round_ = round;
        began_ = net().now();
        counted_ = {};
        arrivals_.clear();
        in_.clear();
    }

    /// The caller's own state may change from now on.
    void keep_state_for_latecomers() {
        const auto is_late = [this](const link_state& l) { return l.given != round_; };
        if (std::none_of(links_.begin(), links_.end(), is_late)) return;
        const byte_pieces given = state_;
        kept_state_.resize(given.size_bytes());
        auto to = kept_state_.begin();
        for (const byte_view piece : given) to = std::copy(piece.begin(), piece.end(), to);
        state_ = byte_pieces(kept_state_);
    }
    static byte_pieces content_behind_header(const byte_pieces& message) {
        byte_pieces content;
        std::size_t skip = wire::header_bytes;
        for (const byte_view piece : message) {
            const std::size_t skipped = std::min(skip, piece.size());
            skip -= skipped;
            if (skipped < piece.size()) content.push(piece.subspan(skipped));
        }
        return content;
    }

    /// A state to every child that has answered the last one.
    void give_state() {
        give_each(operation::next_round, blame_.patience(), [](const link_state& link) { return link.is_ready(); });
    }

    /// First to those that have room for it: a full mailbox holds nobody else up.
    template <class Which>
    void give_each(operation kind, duration at_most, Which&& is_meant) {
        std::vector<std::size_t> refused;
        for (std::size_t i = 0; i < links_.size(); ++i)
            if (is_meant(links_[i]) && !give(i, kind, deadline::immediate)) refused.push_back(i);
        const time_point until = net().now() + at_most;
        if (at_most.ns > 0)
            for (const std::size_t i : refused) give(i, kind, until);
    }

    /// Whether there was room for it.
    bool give(std::size_t child, operation kind, deadline until) {
        link_state& link = links_[child];
        const bool has_values = kind == operation::next_round;
        wire::header head = has_values ? state_head_ : empty_head();
        head.kind = kind;
        head.context = context();
        head.epoch = static_cast<std::uint32_t>(round_);
        head.number = link.answered;
        head.contributors = link.latest == fate::out ? 0 : 1;
        const byte_pieces values = has_values ? state_ : byte_pieces{};
        buffer bytes(wire::header_bytes + values.size_bytes());
        wire::encode(head, bytes.data());
        auto to = bytes.begin() + static_cast<std::ptrdiff_t>(wire::header_bytes);
        for (const byte_view piece : values) to = std::copy(piece.begin(), piece.end(), to);
        const std::size_t size = bytes.size();
        if (!net().post(children_[child], on_links(), std::move(bytes), until)) return false;
        count_sent(size);
        if (!has_values) return true;
        link.given = round_;
        link.missed_since.reset();
        return true;
    }

    static wire::header empty_head() {
        return {.element = element_type::int32, .index_bytes = 4, .codes = {.indices = index_coding::dense}};
    }

    /// What a parent says while this rank does not wait for a state.
    void hear(message&& got) {
        count_received(got);
        const wire::header head = state_of(got);
        if (head.kind == operation::end_rounds) end_ = std::move(got);
        if (head.kind == operation::round_over) over_ = std::max(over_, std::uint64_t{head.epoch});
    }

    /// What children send meanwhile is kept for later, so that it does not stop up the mailbox.
    std::optional<message> receive_state(deadline until) {
        if (end_) return std::exchange(end_, std::nullopt);
        while (auto got = net().receive(neighbours_, on_links(), until)) {
            if (got->source() != parent_) {
                early_.push_back(std::move(*got));
                continue;
            }
            count_received(*got);
            if (state_of(*got).kind != operation::round_over) return got;
        }
        return std::nullopt;
    }

    wire::header state_of(const message& newest) {
        return read(parent_, [&] {
            const wire::header head = frame_reader(newest.pieces()).peek();
            wire::detail::require(head.context == context(), "of another context");
            wire::detail::require(head.kind == operation::next_round || head.kind == operation::end_rounds ||
                                      head.kind == operation::round_over,
                                  "nothing that a parent says");
            return head;
        });
    }

    /// What became of this rank's latest contribution, and so of what its children had put into it.
    void learn_fates(const wire::header& head) {
        was_in_ = head.contributors != 0 && head.number == answered_ && answered_ != 0;
        for (link_state& each : links_)
            if (each.latest == fate::with_mine) each.latest = was_in_ ? fate::in : fate::out;
    }

    /// Takes what has come since the last round ended.
    void absorb() {
        if (is_leaf()) return;
        for (message& each : early_) take(std::move(each), false);
        early_.clear();
        while (auto got = net().receive(children_, on_links(), deadline::immediate)) take(std::move(*got), false);
    }

    void await_trigger() {
        const auto starts = [&] {
            return policies_.start.starts(ready(), static_cast<int>(links_.size()) + 1, key_.derive(round_));
        };
        take_until(starts, deadline::never.at, false);
    }

    /// Takes what comes until `is_enough()`, which may also change at `when`; gives up when all patience has passed.
    template <class Enough>
    void take_until(Enough&& is_enough, time_point when, bool gives_state) {
        const time_point entered = net().now();
        const time_point half = entered + blame_.patience() / 2, last = entered + blame_.patience();
        rank_t told = no_rank;
        while (!is_enough()) {
            const time_point now = net().now();
            if (now >= last) give_up();
            if (const rank_t first = first_missing(); now >= half && first != told) blame_.tell(told = first);
            auto got = net().receive(neighbours_, on_links(),
                                     std::min({now < when ? when : last, now < half ? half : last, last}));
            if (!got) continue;
            if (got->source() == parent_)
                hear(std::move(*got));
            else
                take(std::move(*got), gives_state);
        }
        if (told != no_rank) blame_.tell_nothing();
    }

    /// Of the root and its children.
    std::span<const rank_t> ready() {
        ready_.assign(1, net().rank());
        for (std::size_t i = 0; i < links_.size(); ++i)
            if (links_[i].is_ready()) ready_.push_back(children_[i]);
        return ready_;
    }

    bool is_complete(time_point time_up) {
        for (const link_state& each : links_)
            if (!each.is_ready() && !policies_.age.may_lead(static_cast<std::uint32_t>(round_ - each.given)))
                return false;
        return policies_.enough.is_complete({.expected = static_cast<int>(links_.size()),
                                             .in = in_,
                                             .time_is_up = !is_leaf() && net().now() >= time_up});
    }

    void take(message&& got, bool gives_state) {
        count_received(got);
        const rank_t source = got.source();
        const auto child =
            static_cast<std::size_t>(std::find(children_.begin(), children_.end(), source) - children_.begin());
        const wire::header head = read(source, [&] {
            const wire::header h = frame_reader(got.pieces()).peek();
            wire::detail::require(h.kind == operation::contribute && h.context == context(), "no contribution");
            return h;
        });
        link_state& link = links_[child];
        if (head.epoch <= link.answered) return;  // it came twice
        if (head.epoch != link.given)
            fail(failure::protocol, source,
                 "rank " + std::to_string(source) + " contributes to round " + std::to_string(head.epoch) +
                     ", which it has not been given");
        link.answered = head.epoch;
        const auto age = static_cast<std::uint32_t>(round_ - head.epoch);
        const bool counts = policies_.age.accepts(age) || !policies_.age.may_lead(age);
        link.latest = age == 0 ? fate::with_mine : counts ? fate::in : fate::out;
        if (is_root() && link.latest == fate::with_mine) link.latest = fate::in;
        if (age != 0) late_.push_back({source, age, link.missed_since ? net().now() - *link.missed_since : duration{}});
        if (link.latest != fate::out) {
            const auto number = static_cast<int>(child);
            if (const auto at = std::lower_bound(in_.begin(), in_.end(), number); at == in_.end() || *at != number)
                in_.insert(at, number);
            arrivals_.push_back({source, number, head.epoch, age, std::move(got)});
        }
        if (age != 0 && gives_state) give(child, operation::next_round, net().now() + blame_.patience());
    }

    /// The first child that is at work, or else one that has had no room for the state.
    rank_t first_missing() const {
        const auto find = [&](auto&& is_missing) -> rank_t {
            for (std::size_t i = 0; i < links_.size(); ++i)
                if (is_missing(links_[i])) return children_[i];
            return no_rank;
        };
        const rank_t at_work = find([](const link_state& link) { return !link.is_ready(); });
        return at_work != no_rank ? at_work : find([&](const link_state& link) { return link.given != round_; });
    }

    /// Too few have come. Without its root nobody can go on; without another rank, the others may.
    [[noreturn]] void give_up() {
        std::string in;
        for (const int child : in_)
            in += (in.empty() ? "" : ", ") + std::to_string(children_[static_cast<std::size_t>(child)]);
        const abort_notice notice =
            blame_.notice(round_, first_missing(), "",
                          "; rank " + std::to_string(net().rank()) + " has contributions of " +
                              (in.empty() ? "no child" : "its children " + in) + ", which is not enough");
        throw_error(is_root() ? net().abort(notice) : notice);
    }

    void count_sent(std::size_t bytes) {
        ++counted_.messages_sent;
        counted_.bytes_sent += bytes;
    }
    void count_received(const message& m) {
        ++counted_.messages_received;
        counted_.bytes_received += m.pieces().size_bytes();
    }

    open_context<Net> context_;
    open_context<Net> waits_;
    Policies policies_;
    random_key key_;
    round_blame<Net> blame_;
    rank_t parent_;
    int height_;
    std::vector<rank_t> children_;
    std::vector<rank_t> neighbours_;  // and the parent
    std::vector<link_state> links_;
    std::vector<rank_t> ready_;
    wire::header state_head_{};
    byte_pieces state_;                     // the values of the round's state, wherever they lie
    std::optional<message> state_message_;  // from the parent, which holds them
    buffer kept_state_;                     // at the root, where a child may need them later
    std::uint64_t round_ = 0;
    std::uint64_t answered_ = 0;
    std::uint64_t over_ = 0;  // the latest round of which the parent has said so
    bool was_in_ = false;
    bool has_ended_ = false;
    time_point began_{};
    traffic counted_{};
    std::optional<message> end_;  // of the rounds, which came while this rank did not wait for it
    std::vector<message> early_;  // contributions that came while this rank waited for a state
    std::vector<arrival> arrivals_;
    std::vector<int> in_;
    std::vector<latecomer> late_;
};

}  // namespace rill::inline RILL_ABI::detail
