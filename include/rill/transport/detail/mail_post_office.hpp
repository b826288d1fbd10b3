#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/lookout.hpp>
#include <rill/transport/detail/mail_control.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_expectations.hpp>
#include <rill/transport/detail/mail_inbox.hpp>
#include <rill/transport/detail/mail_outbox.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_redirection.hpp>
#include <rill/transport/detail/mail_storage.hpp>
#include <rill/transport/detail/mail_transfers.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Handles one rank's messages and notes, sent and received. It never waits. It lives as long as its port, so
/// that the next endpoint on the same processes finishes the transfers that an endpoint leaves behind.
template <class Port>
class post_office {
  public:
    using options = typename Port::options;
    using node = mail::node<typename Port::request>;
    using outgoing = mail::outgoing<typename Port::request>;
    using parcel = mail::parcel<typename Port::request>;

    explicit post_office(const typename Port::place& of)
        : port_(of), parcels_(port_), transfers_(port_, outbox_), inbox_(port_.size()), watch_(port_.size()) {}

    const Port& through() const { return port_; }
    void free() { port_.free(); }
    const options& chosen() const { return chosen_; }
    rank_t rank() const { return port_.rank(); }
    int size() const { return port_.size(); }
    control& knowledge() { return control_; }
    traffic& counted() { return counted_; }

    /// Begins the work for an endpoint. `incarnation` is its number, equal on all ranks; notes with older ones are
    /// ignored.
    void open(const options& chosen, std::uint32_t incarnation) {
        chosen_ = chosen;
        port_.configure(chosen);
        incarnation_ = incarnation;
        parcels_.set_capacity(chosen.eager_bytes);
        transfers_.set_small(chosen.eager_bytes / 8);
        most_eager_bytes_ = std::max(most_eager_bytes_, chosen.eager_bytes);
        if (landing_.size() < landing_size()) landing_ = storage(landing_size());
        peers_.assign(static_cast<std::size_t>(size()), {});
        unasked_ = 0;
        expectations_ = {};
        control_ = {};
        watch_ = rill::detail::lookout(size());
        counted_ = {};
        known_open_ = every_context;
    }

    /// Ends the work for the endpoint and waits for nobody: transfers in progress continue, the rest is dropped.
    void close() noexcept {
        outbox_.for_each_open([&](outgoing& sent) {
            if (!sent.is_moving) outbox_.close(sent);
        });
        inbox_.for_each([&](node& left) { discard(left); });
        for (peer_state& peer : peers_) peer.unasked.clear();
        unasked_ = 0;
        landings_.clear();
        transfers_.pool().clear();
    }

    /// Called when the port ends.
    void abandon() noexcept {
        parcels_.abandon();
        transfers_.abandon();
    }

    /// Posts a borrowed message and returns its id; 0 when the message has been copied.
    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces);
    /// Posts a buffer that is handed over; false when the receiver's mailbox has no room.
    bool post(rank_t peer, channel on, buffer& bytes);
    bool is_done(std::uint64_t id) const { return outbox_.find(id) == nullptr; }
    rank_t receiver_of(std::uint64_t id) const {
        const outgoing* const sent = outbox_.find(id);
        return sent == nullptr ? no_rank : sent->peer;
    }
    /// Withdraws a message; false when it is being sent.
    bool withdraw(std::uint64_t id);

    /// Takes the earliest message from any of the peers that has arrived; else asks for the announced ones: null.
    node* take(std::span<const rank_t> peers, channel on);
    /// Takes the latest message that has arrived or been announced, and drops all older ones; null while it has not
    /// arrived. A message that has been asked for is not dropped for later ones, so that repeated polls succeed.
    node* take_latest(std::span<const rank_t> peers, channel on);
    /// Takes the first message from `peer` for `receive_into`. It may still have to arrive; `node::straight` says
    /// whether it arrives straight in `targets`.
    node* claim(rank_t peer, channel on, std::span<const byte_span> targets, std::size_t room);
    /// Gives back a claimed message in any state. One that arrives straight must have been redirected before.
    void unclaim(node& n);
    /// Throws `peer_failure` where none of the peers will do any more what this rank waits for on a channel: all have
    /// gone, or have left and no deadline would end the wait.
    void require_any(std::span<const rank_t> peers, channel on, deadline until) const;
    /// The same of a wait for messages, in a context that is monitored.
    void require_coming(std::span<const rank_t> peers, channel on) const {
        require_heard(peers, on);
        if (watch_.waits_in_vain(peers, on)) throw_error(rill::detail::notice_of_ends(rank(), peers, on));
    }
    /// Throws `peer_failure` where a wait in a context that is monitored is for peers that are silent.
    void require_heard(std::span<const rank_t> peers, channel on) const {
        if (watch_.waits_for_silent(peers, on)) throw_error(rill::detail::notice_of_silence(rank(), peers, on));
    }
    /// What is on its way to a silent peer does not use its sender's memory any more.
    void free_memory_for(rank_t peer) {
        if constexpr (MonitoringPort<Port>)
            if (peer != no_rank && at(peer).is_silent) port_.copy_all(peer);
    }
    bool is_away(rank_t peer) const { return at(peer).has_left || at(peer).has_gone; }

    /// See `MonitoredTransport`.
    void monitor(channel on);
    void fence(rank_t peer, std::uint64_t incarnation);
    /// Completes the receive of a claimed message that has arrived.
    void accept(node& n) {
        repay(n);
        counted_ += {.messages_received = 1, .bytes_received = n.size};
    }
    redirection<Port> redirect(node& n) { return {transfers_, n}; }

    /// Asks for the next message of the channel that is not yet expected, as soon as it is announced.
    void expect(const expectation& next);
    /// Removes all expectations of the channel, except of messages that have been asked for.
    void forget(channel on) {
        expectations_.remove([=](const expectation& e) { return e.on == on; });
    }
    /// Takes a message of the channel that arrives, or has arrived, in the targets of its expectation out of its list;
    /// null where there is none.
    node* take_placed(channel on);
    /// Releases a message that is in no list and that nobody will take, now or when it has arrived.
    void dispose(node& n) noexcept;

    /// Called by the receiver when it will not read the message again.
    void release(node& n) noexcept {
        landings_.put(std::move(n.note));
        transfers_.pool().put(std::move(n.body));
        inbox_.recycle(n);
    }

    void close_context(std::uint64_t context) {
        expectations_.remove([=](const expectation& e) { return e.on.context == context; });
        control_.calls.close(context);
        control_.forget(context);
        watch_.forget(context);
        known_open_ = every_context;
        inbox_.for_each([&](node& n) {
            if (n.on.context == context) drop(n);
        });
    }

    void tell(rank_t peer, envelope head, byte_view payload = {}) {
        head.incarnation = incarnation_;
        head.size = static_cast<std::uint32_t>(payload.size());
        if (peer == rank()) return handle(peer, head, payload.data());
        parcel& sent = parcels_.compose(payload.size());
        if (!payload.empty()) std::memcpy(sent.payload(), payload.data(), payload.size());
        parcels_.send(head, peer);
    }
    void tell_others(const envelope& head, byte_view payload = {}) {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank()) tell(peer, head, payload);
    }

    /// Advances all transfers and handles at most one note; false when nothing has happened. A port that `wakes` is
    /// asked whether anything has come only where it `looks`.
    bool progress(bool looks = true) {
        if constexpr (Port::wakes)
            if (looks) port_.look();
        bool moved = parcels_.any_flying() && parcels_.progress();
        if (unasked_ != 0) moved |= send_on();
        if (transfers_.any()) moved |= transfers_.progress([this](node& n, bool withdrawn) { ended(n, withdrawn); });
        std::byte* const at = landing_.data() + parcel::lead;
        if (hear_news()) return true;
        const received_note note = port_.receive_note(at, landing_.size() - parcel::lead);
        if (note.source == no_rank) return mourn() || hear_goodbye() || judge() || moved;
        envelope head;
        if (note.size >= sizeof head) std::memcpy(&head, at, sizeof head);
        if (note.size != sizeof head + head.size) refuse(note.source, head);
        handle(note.source, head, landing_.data() + storage::alignment);
        return true;
    }

    /// Whether only the arrival of a note can change anything.
    bool only_waits_for_notes() const { return !parcels_.any_flying() && !transfers_.any() && unasked_ == 0; }

    /// The rank that says which notice was the first: the lowest that is there.
    rank_t judging() const {
        rank_t lowest = 0;
        while (lowest != rank() && is_away(lowest)) ++lowest;
        return lowest;
    }
    /// Declares one of the reports of a context, of which there must be one, as what ended it, and tells all ranks.
    void decide(std::uint64_t context);
    void answer_questions(std::uint64_t context);
    void depart();
    void leave();
    bool have_all_left(bool after_failure) const;
    /// Whether a failure of this rank ends nobody else: the others monitor, or are away.
    bool do_all_others_go_on() const;
    bool takes_newcomers() const {
        if constexpr (MonitoringPort<Port>) return port_.takes_newcomers();
        return false;
    }
    void watch_leaving();

  private:
    /// Bytes of two kinds: of messages that are handed over, and of messages that go unasked.
    struct credit {
        std::size_t handed = 0;
        std::size_t unasked = 0;
    };
    struct peer_state {
        credit outstanding{};          ///< sent by this rank and not known to be taken
        credit owed{};                 ///< taken by this rank, which has not told the peer
        std::size_t came_unasked = 0;  ///< bytes of such messages whose sender has not been told that they are taken
        std::uint32_t life = 0;        ///< counts those that have sat on the seat
        bool want_sent = false;
        bool has_gone = false;  ///< without a farewell, or by an exception, or it is silent
        bool has_left = false;
        bool is_silent = false;     ///< it may be heard again
        bool asks_for_end = false;  ///< it wants to be told when this rank ends
        bool monitors = false;      ///< and goes on without it
        bool wanted = false;
        std::optional<abort_notice> failure{};                            ///< what its body has thrown
        std::vector<outgoing*> unasked{};                                 ///< being sent, in order
        std::vector<unasked_arrival<typename Port::request>> arrivals{};  ///< being received
    };
    /// Notes of one message that are on their way at once. Two keep the line busy while a third is made.
    static constexpr int most_flying = 2;

    /// Large enough for notes of earlier endpoints, which may still arrive.
    std::size_t landing_size() const { return storage::alignment + most_eager_bytes_; }

    void count_sent(std::size_t size) { counted_ += {.messages_sent = 1, .bytes_sent = size}; }

    peer_state& state_of(rank_t peer) { return peers_[static_cast<std::size_t>(peer)]; }
    const peer_state& at(rank_t peer) const { return peers_[static_cast<std::size_t>(peer)]; }
    bool goes_unasked(rank_t peer, std::size_t size);
    std::uint64_t begin(outgoing& sent, channel on, std::size_t size);
    bool send_on();
    void stop(outgoing& sent);
    void want(rank_t peer);
    void take_beginning(node& n, byte_view content);
    bool take_more(rank_t source, std::uint64_t id, byte_view content);
    void take_end(rank_t source, std::uint64_t id);
    void send_whole(note kind, rank_t peer, channel on, const byte_pieces& pieces, std::size_t size);
    std::uint64_t announce(note kind, outgoing& sent, channel on);
    bool ask(node& n, std::span<const byte_span> targets = {});
    void fulfil(node& n, const expectation& by);
    node* ask_first(std::span<const rank_t> peers, channel on);
    void ended(node& n, bool withdrawn);
    void assemble(node& n);
    void taken(node& n);
    void drop(node& n);
    void discard(node& n) noexcept;
    void repay(const node& n);
    void pay(rank_t peer);

    void handle(rank_t source, const envelope& head, const std::byte* payload);
    [[noreturn]] void refuse(rank_t source, const envelope& head) const;
    void handle_control(rank_t source, const envelope& head, const std::byte* payload);
    bool may_say(rank_t source, const envelope& head) const;
    void deliver(rank_t source, const envelope& head, const std::byte* payload);
    void keep_payload(node& n, const std::byte* payload, std::size_t size);
    void hear(rank_t source, const abort_notice& report);
    void hear_end(const abort_notice& notice, const envelope& head, const std::byte* payload);
    bool judge();
    bool mourn();
    bool hear_goodbye();
    bool hear_news();
    void tell_loss(rank_t gone);
    void tell_own_end(rank_t peer);
    void hear_failure(rank_t peer, const abort_notice& failure);
    void tell_end(rank_t peer);
    void tell_change(rank_t of, peer_change change);
    void say(rank_t of, channel on, peer_change change);
    void forsake(rank_t peer);
    bool nobody_is_left(bool after_failure) const;
    bool any_is_away() const;
    /// Whether nothing reaches the peer any more, or nobody has taken its seat.
    bool is_lost_to(rank_t peer) const { return (at(peer).has_gone && !at(peer).is_silent) || life_of(peer) == 0; }
    std::uint64_t life_of(rank_t peer) const {
        if constexpr (MonitoringPort<Port>) return port_.incarnation(peer);
        return 1;
    }
    int leaving_rounds() const { return static_cast<int>(std::bit_width(static_cast<unsigned>(size() - 1))); }
    /// The rank 2^round below this one, or above it.
    rank_t below(int round, int sign = 1) const {
        return static_cast<rank_t>((rank() + std::int64_t{size()} - sign * (std::int64_t{1} << round)) % size());
    }
    bool is_heard(int round) const;
    void go_on_leaving();

    options chosen_{};
    std::uint32_t incarnation_ = 0;
    std::size_t most_eager_bytes_ = 0;  ///< the largest value that any endpoint has chosen
    std::uint64_t known_open_ = every_context;
    Port port_;
    parcels<Port> parcels_;
    outbox<typename Port::request> outbox_;
    transfers<Port> transfers_;
    inbox<typename Port::request> inbox_;
    expectations expectations_;
    storage landing_;
    storage_pool landings_;
    std::vector<peer_state> peers_;
    std::size_t unasked_ = 0;  ///< messages that are being sent unasked
    control control_;
    rill::detail::lookout watch_;
    traffic counted_;
};

}}}  // namespace rill::RILL_ABI::mail
