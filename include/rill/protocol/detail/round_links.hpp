#pragma once

#include <rill/concept/transport.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/round_children.hpp>
#include <rill/protocol/detail/round_machine.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The state of the round under way, as a rank gives it to its children.
template <class Message>
class round_state {
  public:
    /// Refers to the caller's own values, which may change once `keep` has copied them.
    void borrow(const wire::header& head, byte_view values) {
        head_ = head;
        values_ = byte_pieces(values);
    }
    void keep() {
        kept_.assign(values_[0].begin(), values_[0].end());
        values_ = byte_pieces(kept_);
    }
    /// Takes over the parent's message, which stays valid until the next one.
    void hold(const wire::header& head, Message&& from) {
        message_ = std::move(from);
        head_ = head;
        values_ = message_->pieces().after(wire::header_bytes);
    }
    const Message& held() const { return *message_; }

    /// The frame for a child: with the values if it begins a round for the child.
    template <class Session>
    buffer frame(message_kind kind, const Session& of, std::uint64_t round, const round_children::link& child) const {
        const bool has_values = kind == round_kind::next_round;
        wire::header head = has_values ? head_ : empty_head();
        head = of.stamped(head, kind, round);
        head.age = static_cast<std::uint32_t>(round - child.answered);
        head.contributors = child.latest == contribution_fate::out ? 0 : 1;
        const byte_pieces values = has_values ? values_ : byte_pieces{};
        buffer bytes;
        bytes.reserve(wire::header_bytes + values.size_bytes());
        bytes.resize(wire::header_bytes);
        wire::encode(head, bytes.data());
        for (const byte_view piece : values) bytes.append(piece.begin(), piece.end());
        return bytes;
    }

  private:
    static wire::header empty_head() {
        return {.element = element_type::int32, .index_bytes = 4, .codes = {.indices = index_coding::dense}};
    }

    wire::header head_{};
    byte_pieces values_;              ///< in the caller's memory, in `message_` or in `kept_`
    std::optional<Message> message_;  ///< from the parent: its values are passed on
    buffer kept_;                     ///< at the root: a copy for children that need the values later
};

/// A machine of rounds on a transport: it feeds the machine and keeps the messages that the machine knows by handles.
template <Transport Net, class Tree, class Policies>
class round_links {
  public:
    using message = typename Net::message;

    /// `ground`: the context in which the ranks have agreed on the rounds.
    round_links(Net& net, const Tree& tree, Policies policies, random_key key, duration timeout, std::uint64_t ground)
        : session_(net, "rounds", timeout, session_kind::open, ground),
          machine_(std::move(policies), tree, net.size(), net.rank(), key, timeout) {}

    session<Net>& of() { return session_; }
    const session<Net>& of() const { return session_; }
    const round_machine<Policies>& machine() const { return machine_; }
    std::uint64_t context() const { return session_.context(); }
    std::uint64_t round() const { return machine_.round(); }
    /// This rank's place in the round under way, for messages.
    [[gnu::cold]] detail::scene scene() const { return scene_of(round()); }

    /// At the root: begins the next round once enough children are ready.
    void begin(const wire::header& head, byte_view values) {
        state_.borrow(head, values);
        run(machine_.begin(now()));
        if (!machine_.children().all_have(round())) state_.keep();
    }

    /// On other ranks than the root: waits for the newest state, and returns null when rounds have ended. The state's
    /// header has been checked, its content has not. It stays valid until the next one.
    const message* take_newest() {
        run(machine_.take(now()));
        return machine_.has_ended() ? nullptr : &state_.held();
    }

    /// Gathers contributions until there are enough or the round is over, and returns them by rank and round. Late ones
    /// that still count are among them.
    std::span<const round_arrival> gather() {
        run(machine_.gather(now()));
        return machine_.arrivals();
    }
    byte_pieces content_of(const round_arrival& arrival) const { return kept_[arrival.message].pieces(); }

    /// Whether nobody waits any more for this rank's contribution to the round under way.
    bool is_over() {
        run(machine_.look(now()));
        return machine_.is_over();
    }

    /// The latecomers since the last call.
    std::vector<latecomer> latecomers() { return machine_.take_latecomers(); }

    /// Releases what was gathered.
    void forget_arrivals() { kept_.clear(); }

    /// Hands a contribution to the parent.
    void hand_up(buffer&& bytes) {
        handed_up_ = std::move(bytes);
        run(machine_.hand_up(now()));
    }

    /// Tells all ranks below that there are no more rounds. Waits at most `at_most` for room in their mailboxes.
    void end(duration at_most) { run(machine_.end(at_most, now())); }

  private:
    template <class Session, class Machine, class Host>
    friend void run_machine(const Session&, machine_channels, Machine&, machine_action, Host&);

    time_point now() const { return std::as_const(session_.net()).now(); }
    [[gnu::cold]] detail::scene scene_of(std::uint64_t round) const {
        return session_.scene(round, 0, "round " + std::to_string(round));
    }

    /// One channel for both ways, so that a rank that waits for its parent also takes what its children send.
    void run(const machine_action& first) { run_machine(session_, session_.on(0), machine_, first, *this); }

    buffer frame(const machine_action& asked) {
        if (asked.kind == round_kind::contribute) return std::move(handed_up_);
        return state_.frame(asked.kind, session_, asked.number, machine_.children().of(asked.peer));
    }

    wire::header head_of(const message& got) const {
        return read_from(*this, got.source(), [&] {
            const wire::header head = frame_reader(got.pieces()).peek();
            session_.require_own(head);
            const bool is_contribution = head.kind == round_kind::contribute;
            if (got.source() != machine_.parent())
                wire::detail::require(is_contribution, "no contribution");
            else
                wire::detail::require(!is_contribution && head.kind.protocol == round_kind::contribute.protocol,
                                      "its kind is not one that a parent sends");
            return head;
        });
    }

    std::size_t next_handle() const { return kept_.size(); }
    void keep(message&& got, const wire::header& head) {
        if (got.source() == machine_.parent())
            state_.hold(head, std::move(got));
        else
            kept_.push_back(std::move(got));
    }

    /// Too few contributions: the root fails for all ranks, which cannot go on without it. All that a rank misses else
    /// is its own affair, because the others may go on.
    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        const auto reason = static_cast<round_failure>(asked.reason);
        if (reason != round_failure::not_given) require_agreement(asked.peer);
        switch (reason) {
            case round_failure::no_state:
                throw_error(session_.waited_in_vain(scene_of(round() + 1), asked.peer, ", which sends no state"));
            case round_failure::no_room:
                throw_error(session_.waited_in_vain(scene(), asked.peer, ", whose mailbox is full"));
            case round_failure::not_given:
                scene().refuse(asked.peer,
                               {"contributes to round ", asked.number, ", whose state it has not been sent"});
            case round_failure::too_few: break;
        }
        std::string in;
        for (const int number : machine_.children().in())
            in += (in.empty() ? "" : ", ") + std::to_string(machine_.children()[number].rank);
        const abort_notice notice =
            session_.waited_in_vain(scene(), asked.peer, "",
                                    "; rank " + std::to_string(session_.rank()) + " has contributions of " +
                                        (in.empty() ? "no child" : "its children " + in) + ", which is not enough");
        fail_as(notice);
    }
    /// Throws `notice`. The root tells it to all ranks before, since they cannot go on without the root.
    [[noreturn, gnu::cold]] void fail_as(const abort_notice& notice) {
        throw_error(machine_.is_root() ? session_.net().abort(notice) : notice);
    }
    /// Fails if the ranks have not agreed on the rounds, as `rank` knows or is about to hear.
    [[gnu::cold]] void require_agreement(rank_t rank) {
        // Operation 0 has made the group. All ranks have completed it, so it fails only for a rank that has begun anew.
        constexpr std::uint64_t earliest = 1;
        try {
            session_.require_ground(rank, session_.timeout() / 8, earliest);
        } catch (const error& failed) {
            fail_as(failed.notice());
        }
    }

    session<Net> session_;
    round_machine<Policies> machine_;
    round_state<message> state_;
    std::vector<message> kept_;  // contributions, by their handles
    buffer handed_up_;
};

}}}  // namespace rill::RILL_ABI::detail
