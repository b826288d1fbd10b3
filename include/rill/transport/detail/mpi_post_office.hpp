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
#include <rill/transport/detail/mpi_redirection.hpp>
#include <rill/transport/detail/mpi_storage.hpp>
#include <rill/transport/detail/mpi_transfers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mpi::detail {

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
        most_eager_bytes_ = std::max(most_eager_bytes_, chosen.eager_bytes);
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
        landings_.clear();
        transfers_.pool().clear();
    }

    /// MPI ends.
    void abandon() noexcept {
        parcels_.abandon();
        transfers_.abandon();
    }

    /// Sends; the id is 0 when the message has been copied.
    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces);
    /// False when there is no room.
    bool post(rank_t peer, channel on, buffer& bytes);
    bool is_done(std::uint64_t id) const { return outbox_.find(id) == nullptr; }
    rank_t receiver_of(std::uint64_t id) const {
        const outgoing* const sent = outbox_.find(id);
        return sent == nullptr ? no_rank : sent->peer;
    }
    /// False when it is moving.
    bool withdraw(std::uint64_t id);

    /// The earliest message from any of the peers that is here, taken; else null, and those announced are asked for.
    node* take(std::span<const rank_t> peers, channel on);
    /// The latest of what is here and what is announced; all older ones are dropped. What has once been asked for is
    /// not given up for what is announced meanwhile: who looks again and again gets one in the end.
    node* take_latest(std::span<const rank_t> peers, channel on);
    /// The first message from `peer`, taken for `receive_into`; it may still have to arrive, straight in `targets` if
    /// it can: `node::straight` says so.
    node* claim(rank_t peer, channel on, std::span<const byte_span> targets, std::size_t room);
    /// Gives back what was claimed, wherever it has got to; what arrives straight has been redirected.
    void unclaim(node& n);
    /// Of a message that has been claimed, when it is here.
    void accept(node& n) {
        repay(n);
        count_received(n);
    }
    redirection redirect(node& n) { return {transfers_, n}; }

    /// The next message of the channel that is not expected is asked for as soon as it is announced.
    void expect(const expectation& next);
    /// Nothing of the channel is expected any more, but for what has begun to come.
    void forget(channel on) {
        expectations_.remove([=](const expectation& e) { return e.on == on; });
    }
    /// One that comes, or has come, to memory of those who expected it, taken out of its list; null: there is none.
    node* take_placed(channel on);
    /// Of what is in no list: nobody will take it.
    void dispose(node& n) noexcept;

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
        const port::received_note note = port_.receive_note(at, landing_.size() - parcel::lead, chosen_.matched_probes);
        if (note.source == no_rank) return judge() || moved;
        envelope head;
        if (note.size >= sizeof head) std::memcpy(&head, at, sizeof head);
        if (note.size != sizeof head + head.size) refuse(note.source, head);
        handle(note.source, head, landing_.data() + storage::alignment);
        return true;
    }

    /// Nothing but a note can make anything happen.
    bool only_waits_for_notes() const { return !parcels_.any_flying() && !transfers_.any(); }

    /// Takes one of the reports of a context, of which there are some, as what has ended it, and tells all.
    void decide(std::uint64_t context);
    void answer_questions(std::uint64_t context);
    void depart();

  private:
    struct peer_state {
        std::size_t outstanding = 0;  ///< handed over by this rank, not known to be taken
        std::size_t owed = 0;         ///< taken by this rank, the peer not told
        bool want_sent = false;
        bool wanted = false;
    };

    /// An earlier endpoint's notes may still come.
    std::size_t landing_size() const { return storage::alignment + most_eager_bytes_; }

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
    bool may_say(rank_t source, note kind) const;
    void deliver(rank_t source, const envelope& head, const std::byte* payload);
    void keep_payload(node& n, const std::byte* payload, std::size_t size);
    void hear(rank_t source, const abort_notice& report);
    bool judge();

    options chosen_{};
    std::uint32_t incarnation_ = 0;
    std::size_t most_eager_bytes_ = 0;  ///< that any endpoint has chosen
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

}}}  // namespace rill::RILL_ABI::mpi::detail
