#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_turns.hpp>
#include <rill/transport/detail/tcp_conversation.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_liveness.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// The conversations of one rank, with what waits to be sent or taken, and the connections below them. Who calls must
/// hold the engine's mutex.
///
/// A connection that is lost is dialled anew, by the lower rank at once and by the other one a little later; the
/// conversation goes on over it. A peer is gone when each of its addresses has refused a connection twice, when it says
/// that this rank counts as gone there, or when it has been silent for `options::patience`.
class connections {
  public:
    /// A receive of a part.
    struct receive {
        byte_span into;
        std::size_t room = 0;  ///< the size of the receive
        std::uint32_t tag = 0;
        bool begun = false, ended = false;
        bool is_given_up = false;  ///< cancelled; another one with its tag takes its place
        mail::part_end how{};
        std::vector<std::byte> own{};  ///< of a part whose receive was given up
    };
    using place_of_part = std::shared_ptr<receive>;

    explicit connections(mesh&& made)
        : mesh_(std::move(made)), loop_(mesh_.rank), guests_(static_cast<rank_t>(mesh_.ranks)) {}

    const mesh& of() const { return mesh_; }
    loop& waits() { return loop_; }

    void configure(const options& chosen) {
        farewell_ = chosen.farewell_timeout;
        patience_ = chosen.patience;
        const time_point now = wall_clock();
        for (rank_t peer = 0; peer < mesh_.ranks; ++peer) {
            conversation::options talk;
            talk.self = mesh_.rank;
            talk.peer = peer;
            talk.most.note_bytes = sizeof(mail::envelope) + chosen.eager_bytes;
            talk.most.part_bytes = mail::most_part_bytes;
            talk.window_bytes = chosen.window_bytes;
            peers_.push_back(std::make_unique<peer_state>(peer, talk, chosen.patience, now));
            if (peer == mesh_.rank) continue;
            peers_.back()->is_open = true;
            peers_.back()->talk.attach(0);
            hook(*peers_.back(), std::move(mesh_.to_peers[static_cast<std::size_t>(peer)]), false, now);
        }
        listen();
    }

    conversation::ticket send_note(byte_view bytes, rank_t to) {
        peer_state& peer = at(to);
        if (!peer.is_open) return 0;
        const auto sent = peer.talk.send_note(bytes);
        write(peer);
        return is_done(to, sent) ? 0 : sent;
    }
    conversation::ticket send_part(byte_view bytes, rank_t to, std::uint32_t tag) {
        peer_state& peer = at(to);
        if (!peer.is_open) return 0;
        const auto sent = peer.talk.send_part(bytes, static_cast<std::uint16_t>(tag));
        write(peer);
        return is_done(to, sent) ? 0 : sent;
    }
    bool is_done(rank_t to, conversation::ticket sent) { return !at(to).is_open || at(to).talk.is_done(sent); }

    place_of_part receive_part(byte_span into, rank_t from, std::uint32_t tag) {
        peer_state& peer = at(from);
        const auto found = std::find_if(peer.receives.begin(), peer.receives.end(),
                                        [&](const auto& each) { return each->is_given_up && each->tag == tag; });
        if (found == peer.receives.end()) {
            auto made = std::make_shared<receive>(receive{.into = into, .room = into.size(), .tag = tag});
            made->ended = !peer.is_open;
            if (!made->ended) peer.receives.push_back(made);
            return made;
        }
        const place_of_part here = *found;
        here->is_given_up = false;
        here->into = into;
        if (!here->begun) return here;
        peer.receives.erase(found);
        if (here->ended) keep(*here);  // else when it ends
        return here;
    }
    void cancel(const place_of_part& given) {
        if (given->begun || given->ended) return;
        for (auto& peer : peers_) {
            const auto found = std::find(peer->receives.begin(), peer->receives.end(), given);
            if (found == peer->receives.end()) continue;
            *found = std::make_shared<receive>(
                receive{.into = {}, .room = given->room, .tag = given->tag, .is_given_up = true});
        }
        given->ended = given->how.cancelled = true;
    }

    mail::received_note take_note(std::byte* into, std::size_t capacity) {
        if (notes_.empty()) return {};
        note taken = std::move(notes_.front());
        notes_.pop_front();
        if (taken.bytes.size() > capacity) refuse_bytes(mesh_.rank, taken.source, "a note that is too long");
        if (!taken.bytes.empty()) std::memcpy(into, taken.bytes.data(), taken.bytes.size());
        const mail::received_note told{.source = taken.source, .size = taken.bytes.size()};
        if (spare_.size() < most_spare) spare_.push_back(std::move(taken.bytes));
        return told;
    }
    /// Takes what has come, without waiting.
    void look() {
        bool any = false;
        loop_.look([&](std::uint64_t name, std::uint32_t events) {
            any = true;
            serve(name, events);
        });
        keep_time();
        if (any) loop_.wake();  // those who wait for these sockets find nothing there
    }
    template <class Lock>
    void await_note(Lock& lock, deadline until) {
        loop_.wait(lock, timer_, until, [this](std::uint64_t name, std::uint32_t events) { serve(name, events); });
        keep_time();
    }
    template <class Lock>
    void attend(Lock& lock) {
        loop_.attend(lock, timer_, [this](std::uint64_t name, std::uint32_t events) { serve(name, events); });
        keep_time();
    }
    rank_t take_loss() {
        if (losses_.empty()) return no_rank;
        const rank_t lost = losses_.front();
        losses_.erase(losses_.begin());
        return lost;
    }

    /// Says goodbye, waits a limited time until the peers have taken all that was sent, and closes.
    void leave() noexcept {
        try {
            for (auto& each : peers_)
                if (each->is_open) each->talk.say_goodbye(), write(*each);
            const time_point until = wall_clock() + farewell_;
            mail::optional_mutex nobody;
            const auto waits = [](const auto& each) { return each->is_open && !each->talk.is_idle(); };
            while (std::any_of(peers_.begin(), peers_.end(), waits) && wall_clock() < until) {
                try {
                    await_note(nobody, until);
                } catch (const error&) {  // of one peer
                }
                notes_.clear();
            }
            for (auto& each : peers_)  // tells the peers what was taken of their last words
                if (each->is_open) write(*each, true);
        } catch (...) {  // what a peer still says does not matter
        }
        for (auto& each : peers_) shut(*each);
        mesh_.listeners.clear();
        guests_.waiting().clear();
    }

  private:
    static constexpr std::size_t most_spare = 64;
    static constexpr duration between_dials = milliseconds(100);
    static constexpr int most_rounds = 4;         ///< of dials to one peer, side by side
    static constexpr int refusals_of_a_gone = 2;  ///< rounds in which every address refuses

    /// What a name in the loop stands for; the lower half is the rank, the index, or the descriptor.
    enum class kind : std::uint64_t { peer, listener, guest, dial };
    static std::uint64_t name_of(kind which, int number) {
        return static_cast<std::uint64_t>(which) << 32 | static_cast<std::uint32_t>(number);
    }

    struct note {
        rank_t source = no_rank;
        std::vector<std::byte> bytes;
    };
    struct dial {
        pending_connection on;
        int round = 0;
        bool has_proved = false;
    };
    struct peer_state {
        peer_state(rank_t of, const conversation::options& chosen, duration patience, time_point now)
            : rank(of), talk(chosen), alive(patience, now) {}

        rank_t rank;
        conversation talk;
        liveness alive;
        detail::line line{};
        bool is_open = false, said_goodbye = false, wants_to_write = false;
        bool is_deaf = false;  ///< takes nothing more; what it has sent can still be read
        std::list<place_of_part> receives{};
        place_of_part arriving{};
        note coming{};
        // Connections to come.
        std::list<dial> dials{};
        deadline dials_at = deadline::never;
        int round = 0, refused_rounds = 0;
        bool all_refuse = false;           ///< so far in this round
        std::uint64_t newest_attempt = 0;  ///< of the peer's dials that have been accepted
    };
    /// Takes what a peer says.
    struct sink {
        connections& of;
        peer_state& peer;

        byte_span begin_note(std::size_t size) {
            if (!of.spare_.empty()) {
                peer.coming.bytes = std::move(of.spare_.back());
                of.spare_.pop_back();
            }
            peer.coming.bytes.resize(size);
            peer.coming.source = peer.rank;
            return peer.coming.bytes;
        }
        void end_note() { of.notes_.push_back(std::exchange(peer.coming, {})); }
        byte_span begin_part(std::uint16_t tag, std::size_t size) {
            const auto fits = [&](const place_of_part& each) { return each->tag == tag && !each->begun; };
            const auto found = std::find_if(peer.receives.begin(), peer.receives.end(), fits);
            if (found == peer.receives.end()) refuse_bytes(of.mesh_.rank, peer.rank, "a part that was not asked for");
            peer.arriving = *found;
            receive& here = *peer.arriving;
            if (here.room < size) refuse_bytes(of.mesh_.rank, peer.rank, "a part that is too long");
            here.begun = true;
            here.how.size = size;
            if (!here.is_given_up) {
                peer.receives.erase(found);
                return here.into.first(size);
            }
            here.own.resize(size);
            return here.own;
        }
        void end_part(std::uint16_t) {
            const place_of_part done = std::exchange(peer.arriving, nullptr);
            if (!done->is_given_up) keep(*done);
            done->ended = true;
        }
        void goodbye() { peer.said_goodbye = true; }
    };

    /// Copies a part that came while its receive was given up.
    static void keep(receive& of) {
        if (!of.own.empty()) std::memcpy(of.into.data(), of.own.data(), of.own.size());
        of.own = {};
    }

    peer_state& at(rank_t peer) { return *peers_[static_cast<std::size_t>(peer)]; }

    void serve(std::uint64_t name, std::uint32_t events) {
        const int number = static_cast<int>(static_cast<std::uint32_t>(name));
        switch (static_cast<kind>(name >> 32)) {
            case kind::peer: {
                peer_state& peer = at(number);
                if (peer.line && (events & EPOLLOUT) != 0) write(peer);
                if (peer.line && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(peer);
                return;
            }
            case kind::listener: return accept_some(mesh_.listeners[static_cast<std::size_t>(number)]);
            case kind::guest: return serve_guest(number);
            case kind::dial: return serve_dial(number);
        }
    }
    /// Does what is due by now.
    void keep_time() {
        const time_point now = wall_clock();
        if (now < timer_.at) return;
        timer_ = now + between_dials;  // where something throws
        if (listens_at_.at <= now) listen();
        deadline next = listens_at_;
        guests_.drop_late(now);
        if (!guests_.waiting().empty())
            next = std::min<deadline>(next, guests_.waiting().front().since() + reception::most_time);
        for (auto& each : peers_) {
            peer_state& peer = *each;
            for (auto due = liveness_step::heartbeat; peer.is_open && due != liveness_step::nothing;)
                switch (due = peer.alive.tick(now)) {
                    case liveness_step::nothing: break;
                    case liveness_step::heartbeat:
                        peer.talk.say_heartbeat();
                        write(peer);
                        break;
                    case liveness_step::dial: begin_round(peer, now); break;
                    case liveness_step::gone: lose(peer); break;
                }
            if (peer.is_open && !peer.line && peer.dials_at.at <= now) begin_round(peer, now);
            if (peer.is_open && peer.talk.ack_due().at <= now) write(peer);
            if (peer.is_open) next = std::min({next, peer.talk.ack_due(), peer.alive.due(), peer.dials_at});
        }
        timer_ = next;
    }
    void be_back_at(deadline when) { timer_ = std::min(timer_, when); }

    // Connections that stand.

    void hook(peer_state& peer, line made, bool is_watched, time_point now) {
        peer.line = std::move(made);
        tune(peer.line.on(), patience_);
        peer.is_deaf = peer.wants_to_write = false;
        const std::uint64_t name = name_of(kind::peer, peer.rank);
        is_watched ? loop_.change(peer.line.on(), name, false) : loop_.watch(peer.line.on(), name, false);
        stop_dialling(peer);
        peer.refused_rounds = 0;
        peer.alive.heard(now);
        be_back_at(peer.alive.due());
        write(peer);
    }
    void unhook(peer_state& peer) noexcept {
        if (peer.line) loop_.forget(peer.line.on());
        peer.line = detail::line();
        peer.talk.detach();
    }
    void read(peer_state& peer) {
        constexpr int most_reads = 8;  // then it is the turn of others
        sink takes{*this, peer};
        for (int i = 0; i < most_reads; ++i) {
            byte_span room[2];
            const std::size_t count = peer.talk.room(room);
            std::size_t size = 0;
            for (std::size_t k = 0; k < count; ++k) size += room[k].size();
            const ssize_t got = peer.line.read(std::span(room, count));
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return miss(peer);
            const time_point now = wall_clock();
            peer.alive.heard(now);
            try {
                peer.talk.arrived(static_cast<std::size_t>(got), takes, now);
            } catch (...) {  // what this peer says makes no sense
                lose(peer);
                throw;
            }
            if (static_cast<std::size_t>(got) < size) break;
        }
        write(peer);
    }
    void write(peer_state& peer, bool acknowledges_now = false) {
        if (!peer.line || peer.is_deaf) return;
        const bool waited = peer.wants_to_write;
        write_all(peer, acknowledges_now);
        if (waited != peer.wants_to_write)
            loop_.change(peer.line.on(), name_of(kind::peer, peer.rank), peer.wants_to_write);
        be_back_at(peer.talk.ack_due());
    }
    void write_all(peer_state& peer, bool acknowledges_now) {
        const time_point now = wall_clock();
        for (;;) {
            byte_view pieces[line::most_pieces];
            const std::size_t count = peer.talk.gather(pieces, acknowledges_now ? deadline::never.at : now);
            peer.wants_to_write = count != 0;
            if (count == 0) return;
            const ssize_t sent = peer.line.write(std::span(pieces, count));
            if (sent >= 0) {
                peer.talk.wrote(static_cast<std::size_t>(sent));
                peer.alive.spoke(now);
                continue;
            }
            if (errno != EAGAIN) {
                peer.is_deaf = true;
                peer.wants_to_write = false;
            }
            return;
        }
    }

    // Connections that are lost.

    /// Another connection has to be made.
    void miss(peer_state& peer) {
        unhook(peer);
        if (peer.said_goodbye) return shut(peer);
        peer.dials_at = mesh_.rank < peer.rank ? wall_clock() : wall_clock() + between_dials;
        be_back_at(peer.dials_at);
    }
    void lose(peer_state& peer) {
        if (peer.is_open && !peer.said_goodbye) losses_.push_back(peer.rank);
        shut(peer);
    }
    /// Ends all that stands for messages from or to the peer.
    void shut(peer_state& peer) noexcept {
        if (!std::exchange(peer.is_open, false)) return;
        unhook(peer);
        stop_dialling(peer);
        const auto end = [](const place_of_part& each) {
            each->ended = true;
            each->how = {};
        };
        for (const place_of_part& each : peer.receives) end(each);
        peer.receives.clear();
        if (peer.arriving != nullptr) end(peer.arriving);
        peer.arriving = nullptr;
    }

    // Dialling.

    /// Dials each address of the peer, beside dials that have not ended: the system may repeat a lost one only after
    /// seconds.
    void begin_round(peer_state& peer, time_point now) {
        ++peer.round;
        peer.all_refuse = true;
        if (!peer.line) peer.dials_at = now + std::max(between_dials, patience_ / 8);
        peer.dials.remove_if([&](const dial& each) { return each.round <= peer.round - most_rounds; });
        const roster_entry& whom = mesh_.roster[static_cast<std::size_t>(peer.rank)];
        for (const roster_address& each : whom.addresses) {
            ++mesh_.own.attempt;
            socket made = start_connecting(socket_address_of(each));
            if (!made) {
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                    throw library_error(mesh_.rank, text_of({"cannot make the lost connection to rank ", peer.rank,
                                                             " anew: ", system_text()}));
                peer.all_refuse &= errno == ECONNREFUSED;
                continue;
            }
            peer.dials.push_back(
                {.on = pending_connection::dialled(std::move(made), mesh_.own, {peer.rank, whom.incarnation},
                                                   mesh_.secret.prover(), now),
                 .round = peer.round});
            const socket& on = peer.dials.back().on.on();
            loop_.watch(on, name_of(kind::dial, on.get()), true);
        }
        if (!peer.line) end_round(peer);
    }
    /// Ends the round when none of its dials is left.
    void end_round(peer_state& peer) {
        const auto is_current = [&](const dial& each) { return each.round == peer.round; };
        if (std::any_of(peer.dials.begin(), peer.dials.end(), is_current)) return;
        peer.refused_rounds = peer.all_refuse ? peer.refused_rounds + 1 : 0;
        if (peer.refused_rounds == refusals_of_a_gone) return lose(peer);
        peer.dials_at = wall_clock() + between_dials;
        be_back_at(peer.dials_at);
    }
    static void stop_dialling(peer_state& peer) noexcept {
        peer.dials.clear();
        peer.dials_at = deadline::never;
    }
    void serve_dial(int descriptor) {
        for (auto& each : peers_) {
            const auto found = std::find_if(each->dials.begin(), each->dials.end(),
                                            [&](const dial& which) { return which.on.on().get() == descriptor; });
            if (found != each->dials.end()) return go_on(*each, found);
        }
    }
    void go_on(peer_state& peer, std::list<dial>::iterator which) {
        pending_connection& on = which->on;
        bool goes_on = on.proceed();
        if (goes_on && on.now() == handshake::state::asks) {
            // Nothing may be taken behind this number: not from this connection, nor from one that was proved before.
            unhook(peer);
            peer.dials.remove_if([](const dial& each) { return each.has_proved; });
            which->has_proved = true;
            on.prove(peer.talk.taken());
            goes_on = on.proceed();
        }
        if (goes_on && !on.is_settled())
            return loop_.change(on.on(), name_of(kind::dial, on.on().get()), (on.wanted() & POLLOUT) != 0);
        if (goes_on && on.now() == handshake::state::agreed) {
            // The peer has given up the dials that it had begun before it took this one.
            peer.newest_attempt = std::max(peer.newest_attempt, on.said().peer().attempt);
            if (!peer.talk.attach(on.said().peer_taken())) return lose(peer);
            return hook(peer, on.take(), true, wall_clock());
        }
        using refusal = handshake::refusal;
        const refusal why = goes_on ? on.said().why() : refusal::none;
        const bool is_refused = !goes_on && errno == ECONNREFUSED;
        const bool is_gone = why == refusal::incarnation || why == refusal::taken;
        if (is_gone && on.said().is_proven()) return lose(peer);  // there or here
        if (which->round == peer.round) peer.all_refuse &= is_refused;
        peer.dials.erase(which);
        if (!peer.line) end_round(peer);
    }

    // Being dialled.

    void listen() {
        listens_at_ = deadline::never;
        for (std::size_t i = 0; i < mesh_.listeners.size(); ++i)
            loop_.watch(mesh_.listeners[i], name_of(kind::listener, static_cast<int>(i)), false);
    }
    void accept_some(const socket& listener) {
        for (int i = 0; i < reception::most_at_once; ++i) {
            socket made(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (!made && (errno == EINTR || errno == ECONNABORTED)) continue;
            if (!made && errno == EAGAIN) return;
            if (!made) {  // too many descriptors: who dials waits
                for (const socket& each : mesh_.listeners) loop_.forget(each);
                listens_at_ = wall_clock() + between_dials;
                return be_back_at(listens_at_);
            }
            const time_point now = wall_clock();
            const int descriptor = made.get();
            loop_.watch(made, name_of(kind::guest, descriptor), false);
            guests_.admit(pending_connection::accepted(std::move(made), mesh_.own, mesh_.secret.prover(), now));
            be_back_at(now + reception::most_time);
        }
    }
    void serve_guest(int descriptor) {
        auto& all = guests_.waiting();
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const pending_connection& each) { return each.on().get() == descriptor; });
        if (found == all.end()) return;
        bool goes_on = found->proceed();
        if (goes_on && found->now() == handshake::state::asks) {
            const handshake::refusal fault = fault_of(*found);
            if (fault == handshake::refusal::none) {
                pending_connection guest = std::move(*found);
                all.erase(found);
                return welcome(std::move(guest));
            }
            found->refuse(fault);
            goes_on = found->proceed();
        }
        if (!goes_on || found->is_settled())
            all.erase(found);
        else
            loop_.change(found->on(), name_of(kind::guest, descriptor), (found->wanted() & POLLOUT) != 0);
    }
    handshake::refusal fault_of(const pending_connection& guest) {
        using refusal = handshake::refusal;
        const handshake::identity& said = guest.said().peer();
        peer_state& peer = at(said.rank);
        if (!peer.is_open || said.incarnation != mesh_.roster[static_cast<std::size_t>(said.rank)].incarnation)
            return refusal::incarnation;
        // A dial that the peer has given up since may prove itself late: it knows less than has been acknowledged.
        if (said.attempt <= peer.newest_attempt || guest.said().peer_taken() < peer.talk.acknowledged())
            return refusal::stale;
        const auto has_proved = [](const dial& each) { return each.has_proved; };
        if (mesh_.rank < said.rank && std::any_of(peer.dials.begin(), peer.dials.end(), has_proved))
            return refusal::crossed;
        return refusal::none;
    }
    void welcome(pending_connection guest) {
        peer_state& peer = at(guest.said().peer().rank);
        unhook(peer);
        stop_dialling(peer);
        peer.newest_attempt = guest.said().peer().attempt;
        const bool continues = peer.talk.attach(guest.said().peer_taken());
        continues ? guest.accept(peer.talk.taken()) : guest.refuse(handshake::refusal::taken);
        const bool told = guest.proceed() && guest.is_settled();
        if (!continues) return lose(peer);
        if (!told) return miss(peer);
        hook(peer, guest.take(), true, wall_clock());
    }

    mesh mesh_;
    duration farewell_{}, patience_{};
    loop loop_;
    deadline timer_ = deadline::never;  ///< when something is due at the earliest
    reception guests_;
    deadline listens_at_ = deadline::never;
    std::vector<std::unique_ptr<peer_state>> peers_;
    std::deque<note> notes_;
    std::vector<std::vector<std::byte>> spare_;
    std::vector<rank_t> losses_;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
