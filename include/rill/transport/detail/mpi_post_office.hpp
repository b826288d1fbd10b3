#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mpi_control.hpp>
#include <rill/transport/detail/mpi_envelope.hpp>
#include <rill/transport/detail/mpi_expectations.hpp>
#include <rill/transport/detail/mpi_inbox.hpp>
#include <rill/transport/detail/mpi_options.hpp>
#include <rill/transport/detail/mpi_outbox.hpp>
#include <rill/transport/detail/mpi_port.hpp>
#include <rill/transport/detail/mpi_storage.hpp>
#include <rill/transport/detail/mpi_transfers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI::mpi::detail {

/// One rank's messages and notes: what is sent, what has come, what a note makes happen. It never waits, and it lives
/// as long as its communicators: what an endpoint leaves behind, the next one on the same processes finishes.
class post_office {
  public:
    explicit post_office(MPI_Comm of) : port_(of), parcels_(port_), transfers_(port_, outbox_), inbox_(port_.size()) {}

    const port& through() const { return port_; }
    void free() { port_.free(); }
    const options& chosen() const { return chosen_; }
    rank_t rank() const { return port_.rank(); }
    int size() const { return port_.size(); }
    control& knowledge() { return control_; }
    traffic& counted() { return counted_; }

    /// For an endpoint, which has the same number on all ranks; older ones' notes are ignored.
    void open(const options& chosen, std::uint32_t incarnation) {
        chosen_ = chosen;
        incarnation_ = incarnation;
        parcels_.set_capacity(chosen.eager_bytes);
        transfers_.set_small(chosen.eager_bytes / 8);
        if (landing_.size() < landing_size()) landing_ = storage(landing_size());
        peers_.assign(static_cast<std::size_t>(size()), {});
        expectations_ = {};
        control_ = {};
        counted_ = {};
        known_open_ = every_context;
    }

    /// The endpoint ends. Waits for nobody: what is moving goes on, the rest is dropped.
    void close() noexcept {
        outbox_.for_each_open([&](outgoing& sent) {
            if (!sent.is_moving) outbox_.close(sent);
        });
        inbox_.for_each([](const node&) { return true; }, [&](node& left) { discard(left); });
    }

    /// MPI ends.
    void abandon() noexcept {
        parcels_.abandon();
        transfers_.abandon();
    }

    /// Sends; the id is 0 when the message has been copied.
    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces) {
        const std::size_t size = pieces.size_bytes();
        count_sent(size);
        if (size <= chosen_.eager_bytes) return send_whole(note::lent, peer, on, pieces, size), 0;
        outgoing& sent = outbox_.open(peer);
        sent.pieces = pieces;
        return announce(note::announce_lent, sent, on);
    }

    /// False when there is no room.
    bool post(rank_t peer, channel on, buffer& bytes) {
        peer_state& to = peers_[static_cast<std::size_t>(peer)];
        const std::size_t size = bytes.size();
        if (to.outstanding != 0 &&
            (to.outstanding > chosen_.mailbox_bytes || size > chosen_.mailbox_bytes - to.outstanding)) {
            if (!std::exchange(to.want_sent, true)) tell(peer, {.kind = note::want});
            return false;
        }
        to.outstanding += size;
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
    /// False when it is moving.
    bool withdraw(std::uint64_t id) {
        outgoing* const sent = outbox_.find(id);
        if (sent == nullptr) return true;
        if (sent->is_moving) return false;
        const rank_t peer = sent->peer;
        outbox_.close(*sent);
        tell(peer, {.id = id, .kind = note::withdraw});
        return true;
    }

    /// The earliest message from any of the peers that is here, taken; else null, and those announced are asked for.
    node* take(std::span<const rank_t> peers, channel on) {
        node* best = nullptr;
        for (const rank_t peer : peers)
            if (node* n = inbox_.first(peer, on);
                n != nullptr && n->is == node::state::complete && (best == nullptr || n->arrival < best->arrival))
                best = n;
        if (best == nullptr) best = ask_first(peers, on);
        if (best != nullptr) taken(*best);
        return best;
    }

    /// The latest of what is here and what is announced; all others are dropped.
    node* take_latest(std::span<const rank_t> peers, channel on) {
        node* latest = nullptr;
        for (const rank_t peer : peers)
            for (node* n = inbox_.first(peer, on); n != nullptr;) {
                node* const seen = std::exchange(n, inbox_.next(*n));
                node* const older =
                    latest == nullptr || latest->arrival < seen->arrival ? std::exchange(latest, seen) : seen;
                if (older != nullptr) drop(*older);
            }
        if (latest != nullptr && latest->is == node::state::announced) ask(*latest);
        if (latest == nullptr || latest->is != node::state::complete) return nullptr;
        taken(*latest);
        return latest;
    }

    /// The first message from `peer`, taken for `receive_into`; it may still have to arrive, straight in `targets` if
    /// it can: `node::straight` says so.
    node* claim(rank_t peer, channel on, std::span<const byte_span> targets, std::size_t room) {
        node* const n = inbox_.first(peer, on);
        if (n == nullptr) return nullptr;
        if (n->is == node::state::announced && n->size == room && n->source != rank()) {
            inbox_.unlink(*n);
            n->claimed = true;
            ask(*n, targets);
            return n;
        }
        if (n->is == node::state::announced) ask(*n);
        if (n->is != node::state::complete) return nullptr;
        inbox_.unlink(*n);
        return n;
    }
    /// Gives back what was claimed, wherever it has got to.
    void unclaim(node& n) {
        if (n.withdrawn) return release(n);
        if (n.straight) transfers_.redirect(n);
        if (n.straight && n.is == node::state::complete) assemble(n);
        n.straight = n.claimed = false;
        inbox_.put_back(n);
    }
    /// Of a message that has been claimed, when it is here.
    void accept(node& n) {
        repay(n);
        count_received(n);
    }

    /// The next message of the channel that is not expected is asked for as soon as it is announced.
    void expect(const expectation& next) {
        if (node* const n = inbox_.first_unexpected(next.peer, next.on))
            fulfil(*n, next);
        else
            expectations_.add(next);
    }
    /// Drops what is on its way to memory of those who expected it, and what has come there.
    void forget(channel on) {
        expectations_.remove([=](const expectation& e) { return e.on == on; });
        inbox_.for_each([=](const node& n) { return n.placed && n.on == on; },
                        [&](node& n) {
                            transfers_.redirect(n);
                            drop(n);
                        });
    }

    /// By the receiver, who will not read the message again.
    void release(node& n) noexcept {
        landings_.put(std::move(n.note));
        transfers_.pool().put(std::move(n.body));
        inbox_.recycle(n);
    }

    void close_context(std::uint64_t context) {
        expectations_.remove([=](const expectation& e) { return e.on.context == context; });
        control_.calls.close(context);
        control_.forget(context);
        known_open_ = every_context;
        inbox_.for_each([=](const node& n) { return n.on.context == context; }, [&](node& n) { drop(n); });
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

    /// Takes one step; false when nothing has happened.
    bool progress() {
        bool moved = parcels_.any_flying() && parcels_.progress();
        if (transfers_.any()) moved |= transfers_.progress([this](node& n, bool withdrawn) { ended(n, withdrawn); });
        std::byte* const at = landing_.data() + parcel::lead;
        const port::arrival note = port_.receive_note(at, landing_.size() - parcel::lead, chosen_.matched_probes);
        if (note.source == no_rank) return moved;
        envelope head;
        if (note.size >= sizeof head) std::memcpy(&head, at, sizeof head);
        if (note.size != sizeof head + head.size) refuse(note.source, head, note.size);
        handle(note.source, head, landing_.data() + storage::alignment);
        return true;
    }

    /// Nothing but a note can make anything happen.
    bool only_waits_for_notes() const { return !parcels_.any_flying() && !transfers_.any(); }

    void decide(const abort_notice& notice) {
        control_.notices.emplace(notice.context, notice);
        tell_others({.kind = note::verdict}, packed_notice(notice).view());
    }
    void answer_questions(std::uint64_t context);

  private:
    struct peer_state {
        std::size_t outstanding = 0;  ///< handed over by this rank, not known to be taken
        std::size_t owed = 0;         ///< taken by this rank, the peer not told
        bool want_sent = false;
        bool wanted = false;
    };

    std::size_t landing_size() const { return storage::alignment + chosen_.eager_bytes; }

    void count_sent(std::size_t size) {
        ++counted_.messages_sent;
        counted_.bytes_sent += size;
    }
    void count_received(const node& n) {
        ++counted_.messages_received;
        counted_.bytes_received += n.size;
    }

    void send_whole(note kind, rank_t peer, channel on, const byte_pieces& pieces, std::size_t size);
    std::uint64_t announce(note kind, outgoing& sent, channel on);
    void ask(node& n, std::span<const byte_span> targets = {});
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
    [[noreturn]] void refuse(rank_t source, const envelope& head, std::size_t size) const;
    void handle_control(rank_t source, const envelope& head, const std::byte* payload);
    void deliver(rank_t source, const envelope& head, const std::byte* payload);
    void keep_payload(node& n, const std::byte* payload, std::size_t size);
    void judge(rank_t source, const abort_notice& notice);
    void learn(const abort_notice& notice);

    options chosen_{};
    std::uint32_t incarnation_ = 0;
    std::uint64_t known_open_ = every_context;
    port port_;
    parcels parcels_;
    outbox outbox_;
    transfers transfers_;
    inbox inbox_;
    expectations expectations_;
    storage landing_;
    storage_pool landings_;
    std::vector<peer_state> peers_;
    control control_;
    traffic counted_;
};

}  // namespace rill::inline RILL_ABI::mpi::detail
