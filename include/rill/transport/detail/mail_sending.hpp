#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_inbox.hpp>
#include <rill/transport/detail/mail_outbox.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_transfers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The sender's part of a post office: what one rank sends at its port, and what it keeps of each peer.
template <class Port>
class sending_desk {
  public:
    using options = typename Port::options;
    using node = mail::node<typename Port::request>;
    using outgoing = mail::outgoing<typename Port::request>;

    Port& through() { return port_; }
    void free() { port_.free(); }
    const options& chosen() const { return chosen_; }
    rank_t rank() const { return port_.rank(); }
    int size() const { return port_.size(); }
    traffic& counted() { return counted_; }

    /// Called when the port ends.
    void abandon() noexcept {
        parcels_.abandon();
        transfers_.abandon();
    }

    /// Posts a borrowed message and returns its id; 0 when the message has been copied.
    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces) {
        const std::size_t size = pieces.size_bytes();
        count_sent(size);
        if (is_lost_to(peer)) return 0;
        if (size <= chosen_.eager_bytes) return send_whole(note::lent, peer, on, pieces, size), 0;
        outgoing& sent = outbox_.open(peer);
        sent.pieces = pieces;
        goes_unasked(peer, size) ? begin(sent, on, size) : announce(note::announce_lent, sent, on);
        return sent.id;
    }
    /// Posts a buffer that is handed over; false when the receiver's mailbox has no room.
    bool post(rank_t peer, channel on, buffer& bytes) {
        std::size_t& outstanding = state_of(peer).outstanding.handed;
        const std::size_t size = bytes.size();
        if (is_lost_to(peer)) {
            count_sent(size);
            buffer().swap(bytes);
            return true;
        }
        if (outstanding != 0 && (outstanding > chosen_.mailbox_bytes || size > chosen_.mailbox_bytes - outstanding))
            return want(peer), false;
        outstanding += size;
        count_sent(size);
        if (size <= chosen_.eager_bytes) {
            send_whole(note::handed, peer, on, byte_view(bytes), size);
            buffer().swap(bytes);
            return true;
        }
        outgoing& sent = outbox_.open(peer);
        sent.owned = std::move(bytes);
        sent.pieces = byte_view(sent.owned);
        announce(note::announce_handed, sent, on);
        return true;
    }
    bool is_done(std::uint64_t id) const { return outbox_.find(id) == nullptr; }
    rank_t receiver_of(std::uint64_t id) const {
        const outgoing* const sent = outbox_.find(id);
        return sent == nullptr ? no_rank : sent->peer;
    }
    /// Withdraws a message; false when it is being sent.
    bool withdraw(std::uint64_t id) {
        outgoing* const sent = outbox_.find(id);
        if (sent == nullptr) return true;
        if (sent->is_moving) return false;
        if (sent->is_unasked) return stop(*sent), true;
        const rank_t peer = sent->peer;
        outbox_.close(*sent);
        tell(peer, {.id = id, .kind = note::withdraw});
        return true;
    }

    void tell(rank_t peer, envelope head, byte_view payload = {}) {
        head.incarnation = incarnation_;
        head.size = static_cast<std::uint32_t>(payload.size());
        if (peer == rank()) return handle(peer, head, payload.data());
        send(peer, head, payload.size(), [&](std::byte* at) {
            if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
        });
    }
    void tell_others(const envelope& head, byte_view payload = {}) {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank()) tell(peer, head, payload);
    }

    /// Whether only the arrival of a note can change anything.
    bool only_waits_for_notes() const { return !parcels_.any_flying() && !transfers_.any() && unasked_ == 0; }
    /// What is on its way to a silent peer does not use its sender's memory any more.
    void free_memory_for(rank_t peer) {
        if constexpr (MonitoringPort<Port>)
            if (peer != no_rank && at(peer).is_silent) port_.copy_all(peer);
    }
    bool is_away(rank_t peer) const { return at(peer).has_left || at(peer).has_gone; }

  protected:
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

    explicit sending_desk(const typename Port::place& of) : port_(of), parcels_(port_), transfers_(port_, outbox_) {}
    ~sending_desk() = default;

    /// Handles a note that has arrived, or that this rank sends itself.
    virtual void handle(rank_t source, const envelope& head, const std::byte* payload) = 0;

    void open(const options& chosen, std::uint32_t incarnation) {
        chosen_ = chosen;
        port_.configure(chosen);
        incarnation_ = incarnation;
        parcels_.set_capacity(chosen.eager_bytes);
        transfers_.set_small(chosen.eager_bytes / 8);
        peers_.assign(static_cast<std::size_t>(size()), {});
        unasked_ = 0;
        counted_ = {};
    }

    peer_state& state_of(rank_t peer) { return peers_[static_cast<std::size_t>(peer)]; }
    const peer_state& at(rank_t peer) const { return peers_[static_cast<std::size_t>(peer)]; }
    std::uint64_t life_of(rank_t peer) const {
        if constexpr (MonitoringPort<Port>) return port_.incarnation(peer);
        return 1;
    }

    /// Sends the next note of the first message to each peer; true if there was any.
    bool send_on() {
        bool any = false;
        for (rank_t peer = 0; peer < size(); ++peer) {
            auto& waiting = state_of(peer).unasked;
            if (waiting.empty() || parcels_.flying_to(peer) >= most_flying) continue;
            outgoing& sent = *waiting.front();
            const std::size_t left = sent.pieces.size_bytes() - sent.begun, next = std::min(left, chosen_.eager_bytes);
            send(peer, {.id = sent.id, .kind = note::go_on}, next, [&](std::byte* at) {
                rill::detail::copy_from(sent.pieces, sent.begun, {at, next});
            });
            any = true;
            sent.begun += next;
            if (next != left) continue;
            waiting.erase(waiting.begin());
            --unasked_;
            outbox_.close(sent);
        }
        return any;
    }
    /// Ends a message that goes unasked before all of it has been sent.
    void stop(outgoing& sent) {
        unasked_ -= std::erase(state_of(sent.peer).unasked, &sent);
        tell(sent.peer, {.id = sent.id, .kind = note::withdraw});
        outbox_.close(sent);
    }
    /// Nobody wants a message, or no more of it, unless it has been asked for and is being sent.
    void give_up(outgoing& sent) {
        if (sent.is_moving) return;
        sent.is_unasked ? stop(sent) : outbox_.close(sent);
    }

    options chosen_{};
    std::uint32_t incarnation_ = 0;
    Port port_;
    parcels<Port> parcels_;
    outbox<typename Port::request> outbox_;
    transfers<Port> transfers_;
    std::vector<peer_state> peers_;
    std::size_t unasked_ = 0;  ///< messages that are being sent unasked
    traffic counted_;

  private:
    /// Notes of one message that are on their way at once. Two keep the line busy while a third is made.
    static constexpr int most_flying = 2;

    void count_sent(std::size_t size) { counted_ += {.messages_sent = 1, .bytes_sent = size}; }
    /// Whether nothing reaches the peer any more, or nobody has taken its seat.
    bool is_lost_to(rank_t peer) const { return (at(peer).has_gone && !at(peer).is_silent) || life_of(peer) == 0; }

    /// Whether a borrowed message is sent without being asked for. It is if the receiver's memory for such messages has
    /// room for all of it, so that it never stops half-way.
    bool goes_unasked(rank_t peer, std::size_t size) {
        if (peer == rank() || !chosen_.sends_unasked.value_or(port_.neighbours() != this->size())) return false;
        std::size_t& outstanding = state_of(peer).outstanding.unasked;
        if (size > chosen_.mailbox_bytes) return false;
        if (size > chosen_.mailbox_bytes - outstanding) return want(peer), false;
        outstanding += size;
        return true;
    }
    /// Sends the sizes of the pieces at once, so that messages stay in order, and bytes if no other message is under
    /// way.
    void begin(outgoing& sent, channel on, std::size_t size) {
        peer_state& to = state_of(sent.peer);
        const std::size_t room = to.unasked.empty() ? chosen_.eager_bytes - announcement::table : 0;
        sent.is_unasked = true;
        sent.begun = std::min(room, size - 1);
        send(sent.peer, head_of(note::begin, sent, on), announcement::table + sent.begun, [&](std::byte* at) {
            announcement::write_sizes(sent.pieces, at);
            rill::detail::copy_from(sent.pieces, 0, {at + announcement::table, sent.begun});
        });
        to.unasked.push_back(&sent);
        ++unasked_;
    }
    void announce(note kind, outgoing& sent, channel on) {
        const std::size_t small = transfers_.small();
        send(sent.peer, head_of(kind, sent, on), announcement::size_bytes(sent.pieces, small),
             [&](std::byte* at) { announcement::write(sent.pieces, small, at); });
    }
    static envelope head_of(note kind, const outgoing& sent, channel on) {
        return {.context = on.context,
                .id = sent.id,
                .tag = on.tag,
                .kind = kind,
                .pieces = static_cast<std::uint8_t>(sent.pieces.count())};
    }
    void send_whole(note kind, rank_t peer, channel on, const byte_pieces& pieces, std::size_t size) {
        send(peer, {.context = on.context, .tag = on.tag, .kind = kind}, size, [&](std::byte* at) {
            rill::detail::copy_from(pieces, 0, {at, size});
        });
    }
    /// Asks for credit, once until some comes.
    void want(rank_t peer) {
        if (!std::exchange(state_of(peer).want_sent, true)) tell(peer, {.kind = note::want});
    }
    /// Sends a note whose content, of `size` bytes, `write(at)` writes.
    template <class Write>
    void send(rank_t peer, envelope head, std::size_t size, Write&& write) {
        head.incarnation = incarnation_;
        head.size = static_cast<std::uint32_t>(size);
        parcel<typename Port::request>& made = parcels_.compose(size);
        write(made.payload());
        if (peer == rank())
            handle(peer, head, made.payload());
        else
            parcels_.send(head, peer);
    }
};

}}}  // namespace rill::RILL_ABI::mail
