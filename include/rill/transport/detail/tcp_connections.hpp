#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_turns.hpp>
#include <rill/transport/detail/tcp_admissions.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_conversation.hpp>
#include <rill/transport/detail/tcp_deliveries.hpp>
#include <rill/transport/detail/tcp_error.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_liveness.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_mesh.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_polling.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// The conversations of one rank and the connections below them: the mail engine's port. Activities are threads.
///
/// A connection is made when either end has something to say. One that is lost is dialled anew, by the lower rank at
/// once and by the other one a little later; the conversation goes on over it. A peer is gone when each of its
/// addresses has refused a connection twice, when it says that this rank counts as gone there, or when it has been
/// silent for `options::patience`. A rank notices this of the peers that it has or has had a connection with. It dials
/// the next rank at once, so that somebody notices it of each; what it notices, the mail engine tells all.
///
/// Two ranks that have several network cards each have a line for each pair of cards: a connection over those two, made
/// and made anew as the only one of other ranks is. A line that is silent or lost is no failure while another one
/// stands.
class connections final : admissions::owner {
  public:
    struct request {
        deliveries::place_of_part receives{};
        conversation::ticket sends = 0;
        rank_t peer = no_rank;
        explicit operator bool() const { return receives != nullptr || sends != 0; }
    };
    /// The mesh is moved from.
    struct place {
        mesh& met;
        const tcp::options& chosen;
    };
    using options = tcp::options;
    using library_error = tcp::library_error;
    static constexpr const char* name = "TCP";
    static constexpr const char* outlived = "the endpoint has ended";
    static constexpr bool is_simulation = false;
    static constexpr bool wakes = true;

    explicit connections(const place& at)
        : mesh_(std::move(at.met)),
          farewell_(at.chosen.farewell_timeout),
          patience_(at.chosen.patience),
          loop_(mesh_.rank, polling()),
          newcomers_(loop_, mesh_),
          delivered_(mesh_.rank, mesh_.ranks) {
        for (std::size_t number = 0; number < std::max<std::size_t>(1, mesh_.listeners.size()); ++number)
            cards_.push_back(std::make_unique<card>(*this, number));
        talk_.self = mesh_.rank;
        talk_.most.note_bytes = sizeof(mail::envelope) + at.chosen.eager_bytes;
        talk_.most.part_bytes = mail::most_part_bytes;
        talk_.window_bytes = at.chosen.window_bytes;
        for (rank_t peer = 0; peer < mesh_.ranks; ++peer) {
            peers_.push_back(make_peer(peer));
            peers_.back()->is_open = peer != mesh_.rank && incarnation(peer) != 0;
        }
    }

    rank_t rank() const { return mesh_.rank; }
    int size() const { return mesh_.ranks; }
    int neighbours() const { return mesh_.neighbours; }
    bool takes_newcomers() const { return mesh_.takes_newcomers; }
    static bool is_concurrent() { return true; }
    static time_point now() { return wall_clock(); }

    /// Lets peers dial this rank, and dials the one that it watches.
    void configure(const options&) {
        for (std::size_t i = 0; i < mesh_.listeners.size(); ++i) cards_[i]->makes.listen(std::move(mesh_.listeners[i]));
        if (mesh_.takes_newcomers) listen_at_points(wall_clock());
        if (mesh_.ranks > 1) watch(next());
    }
    void free() {}

    request send_note(const std::byte* from, std::size_t size, rank_t to) {
        return send(to, [&](conversation& by) { return by.send_note({from, size}); });
    }
    request send_part(const std::byte* from, std::size_t size, rank_t to, std::uint32_t tag) {
        return send(to, [&](conversation& by) { return by.send_part({from, size}, static_cast<std::uint16_t>(tag)); });
    }
    request receive_part(std::byte* into, std::size_t size, rank_t from, std::uint32_t tag) {
        return {.receives = delivered_.receive_part({into, size}, from, tag, !at(from).is_open), .peer = from};
    }
    bool is_complete(request& of) {
        if (of.sends != 0 && (!at(of.peer).is_open || at(of.peer).talk.is_done(of.sends))) of.sends = 0;
        if (of.receives != nullptr && of.receives->ended) of.receives = nullptr;
        return !of;
    }
    static std::optional<mail::part_end> look(request& of) {
        if (!of.receives->ended) return std::nullopt;
        return std::exchange(of.receives, nullptr)->how;
    }
    void cancel(request& of) noexcept {
        if (of.receives != nullptr) delivered_.cancel(of.receives);
    }
    /// The connections have been closed: nothing is used any more.
    static bool abandon(request& of) noexcept {
        of = {};
        return true;
    }
    /// The part goes on in other memory. False where it is not arriving.
    bool move(const request& of, byte_span to) {
        const rank_t from = delivered_.move(of.receives, to);
        if (from != no_rank) at(from).talk.move_part(to.first(of.receives->how.size));
        return from != no_rank;
    }
    void copy_all(rank_t to) { at(to).talk.copy_all(); }
    [[noreturn]] static void end_job() noexcept { std::abort(); }

    mail::received_note receive_note(std::byte* into, std::size_t capacity) {
        return delivered_.take_note(into, capacity);
    }
    /// Takes what has come, without waiting.
    void look() {
        bool any = false;
        loop_.look([&](std::uint64_t named, std::uint32_t events) {
            any = true;
            serve(named, events);
        });
        keep_time();
        if (any) loop_.wake();  // those who wait for these sockets find nothing there
    }
    template <class Lock>
    void await_note(Lock& lock, deadline until) {
        loop_.wait(lock, timer_, until, [this](std::uint64_t named, std::uint32_t events) { serve(named, events); });
        keep_time();
    }
    template <class Lock>
    void attend(Lock& lock) {
        loop_.attend(lock, timer_, [this](std::uint64_t named, std::uint32_t events) { serve(named, events); });
        keep_time();
    }
    void wake() noexcept { loop_.wake(); }
    template <class Lock>
    void rest(Lock& lock, duration time) {
        loop_.rest(lock, time);
    }
    void dismiss() noexcept { loop_.dismiss(); }
    /// Makes a connection with the peer, by which its end is noticed.
    void watch(rank_t peer) {
        if (at(peer).is_open && !at(peer).is_known) dial_all(at(peer), wall_clock());
    }
    rank_t take_loss() {
        if (losses_.empty()) return no_rank;
        const rank_t first = losses_.front();
        losses_.pop_front();
        return first;
    }
    /// Of a peer whose notes have been taken.
    rank_t take_goodbye() { return delivered_.take_goodbye(); }

    /// The start of a peer; 0 where nobody has taken its seat.
    std::uint64_t incarnation(rank_t peer) const {
        return peer == mesh_.rank ? mesh_.own.incarnation : mesh_.at(peer).incarnation;
    }
    /// From now on a peer that is silent for `options::patience` does not count as gone. It is dialled until it answers
    /// or its addresses refuse; the conversation then goes on.
    void monitor() { keeps_silent_ = true; }
    mail::peer_news take_news() {
        if (news_.empty()) return {};
        const mail::peer_news first = news_.front();
        news_.pop_front();
        return first;
    }

    /// Says goodbye, waits a limited time until the peers have taken all that was sent, and closes.
    void leave() noexcept {
        try {
            looks_at_points_ = deadline::never;
            for (auto& each : peers_) {
                // The one before watches this rank, and must hear of its end.
                if (!each->is_open || !(each->is_known || each->rank == previous())) continue;
                each->talk.say_goodbye();
                write(*each);
            }
            const time_point until = wall_clock() + farewell_;
            mail::optional_mutex nobody;
            const auto waits = [](const auto& each) { return each->is_open && !each->talk.is_idle(); };
            while (std::any_of(peers_.begin(), peers_.end(), waits) && wall_clock() < until) {
                try {
                    await_note(nobody, until);
                } catch (const error&) {  // of one peer
                }
                delivered_.drop_notes();
            }
            for (auto& each : peers_)  // tells the peers what was taken of their last words
                if (each->is_open) write(*each, true);
        } catch (...) {  // what a peer still says does not matter
        }
        for (auto& each : peers_) shut(*each);
        for (auto& each : cards_) each->makes.stop_listening();
    }

  private:
    static constexpr duration between_dials = milliseconds(100);  ///< of the lower and the higher rank
    static constexpr int refusals_of_a_gone = 2;                  ///< rounds in which every address refuses

    /// One of the lines to a peer.
    struct route {
        std::size_t number;
        liveness alive;
        detail::line line{};
        bool wants_to_write = false;
        bool is_deaf = false;              ///< takes nothing more; what it has sent can still be read
        bool is_refused = false;           ///< each address has refused a connection twice
        std::uint64_t newest_attempt = 0;  ///< of the peer's dials that have been accepted
    };
    struct peer_state {
        peer_state(rank_t of, const conversation::options& chosen, duration patience) : rank(of), talk(chosen) {
            for (std::size_t number = 0; number < chosen.lines; ++number)
                routes.push_back({.number = number, .alive = liveness(patience, wall_clock())});
        }

        rank_t rank;
        conversation talk;
        std::vector<route> routes{};
        bool is_open = false;
        bool is_known = false;  ///< one has dialled the other
        bool is_silent = false;
    };
    /// What dials and is dialled over one of this rank's network cards.
    struct card final : contacts::owner {
        card(connections& all, std::size_t index)
            : of(all), number(index), makes(all.loop_, identity_of(all, index), all.mesh_.security(), pace_of(all)) {}

        connections& of;
        std::size_t number;
        contacts makes;

        std::uint64_t begin(rank_t peer) override { return of.begin(of.at(peer), number); }
        void dialled(rank_t peer, pending_connection&& made) override {
            of.dialled(of.at(peer), number, std::move(made));
        }
        void refused(rank_t peer, const handshake& by) override { of.refused(of.at(peer), by); }
        void unreachable(rank_t peer, int rounds) override { of.unreachable(of.at(peer), number, rounds); }
        void decide(pending_connection& guest) override { of.decide(guest, number); }
        void came(pending_connection&& guest, bool is_told) override { of.came(std::move(guest), is_told, number); }

      private:
        static handshake::identity identity_of(const connections& all, std::size_t index) {
            handshake::identity own = all.mesh_.own;
            own.line = static_cast<std::uint8_t>(index);
            return own;
        }
        static contacts::pace pace_of(const connections& all) {
            return {.slow = std::max(contacts::pace().again, all.patience_ / 8)};
        }
    };

    template <class Say>
    request send(rank_t to, Say&& say) {
        peer_state& peer = at(to);
        if (!peer.is_open) return {};
        request begun{.sends = say(peer.talk), .peer = to};
        write(peer);
        is_complete(begun);
        return begun;
    }

    peer_state& at(rank_t peer) { return *peers_[static_cast<std::size_t>(peer)]; }

    rank_t next() const { return next_seat(1); }
    rank_t previous() const { return next_seat(mesh_.ranks - 1); }
    /// The nearest that somebody sits on; this one where there is none.
    rank_t next_seat(int step) const {
        rank_t found = mesh_.rank;
        do found = (found + step) % mesh_.ranks;
        while (found != mesh_.rank && incarnation(found) == 0);
        return found;
    }
    std::unique_ptr<peer_state> make_peer(rank_t rank) const {
        conversation::options talk = talk_;
        talk.peer = rank;
        if (rank != mesh_.rank) talk.lines = lines_to(rank);
        return std::make_unique<peer_state>(rank, talk, patience_);
    }

    contacts& contacts_of(const route& on) { return cards_[on.number]->makes; }
    /// One for each pair of network cards of the same number.
    std::size_t lines_to(rank_t peer) const { return std::min(cards_.size(), cards_of(mesh_.at(peer))); }

    void serve(std::uint64_t named, std::uint32_t events) {
        card& by = *cards_[contacts::line_of(named)];
        if (by.makes.serve(named, by)) return be_back_at(by.makes.due());
        if (contacts::is_newcomer(named)) return newcomers_.serve(named, *this);
        peer_state& peer = at(contacts::peer_of(named));
        if (by.number >= peer.routes.size()) return;  // of the life before on this seat
        route& on = peer.routes[by.number];
        if (on.line && (events & EPOLLOUT) != 0) write(peer, on);
        if (on.line && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(peer, on);
    }
    /// Does what is due by now.
    void keep_time() {
        const time_point now = wall_clock();
        if (now < timer_.at) return;
        timer_ = now + between_dials;  // where something throws
        for (auto& each : cards_) each->makes.keep_time(now, *each);
        newcomers_.drop_late(now);
        if (looks_at_points_.at <= now) listen_at_points(now);
        deadline next = looks_at_points_;
        for (auto& each : peers_) {
            if (!each->is_known) continue;
            for (route& on : each->routes) {
                keep_time_of(*each, on, now);
                if (each->is_open) next = std::min({next, each->talk.ack_due(on.number), on.alive.due()});
            }
        }
        for (auto& each : cards_) next = std::min(next, each->makes.due());
        timer_ = next;
    }
    void keep_time_of(peer_state& peer, route& on, time_point now) {
        for (auto due = liveness_step::heartbeat; peer.is_open && due != liveness_step::nothing;)
            switch (due = on.alive.tick(now)) {
                case liveness_step::nothing: break;
                case liveness_step::heartbeat:
                    peer.talk.say_heartbeat(on.number);
                    write(peer, on);
                    break;
                case liveness_step::dial:
                    dial(peer, on, now);
                    if (peer.routes.size() == 1) break;
                    peer.talk.fall_silent(on.number);
                    write(peer);  // the others carry what was written on it
                    break;
                case liveness_step::gone: be_silent(peer, on, now); break;
            }
        if (peer.is_open && peer.talk.ack_due(on.number).at <= now) write(peer, on);
    }
    void be_back_at(deadline when) {
        if (timer_ <= when) return;
        timer_ = when;
        loop_.hurry();
    }

    // Connections that stand.

    void know(peer_state& peer, time_point now) {
        if (std::exchange(peer.is_known, true)) return;
        for (route& each : peer.routes) each.alive = liveness(patience_, now);
    }
    void hook(peer_state& peer, route& on, line made) {
        const time_point now = wall_clock();
        on.line = std::move(made);
        tune(on.line.on(), patience_);
        if (peer.routes.size() > 1) hold_back(on.line.on());
        on.is_deaf = on.wants_to_write = on.is_refused = false;
        loop_.change(on.line.on(), contacts::name_of_peer(peer.rank, on.number), false);
        know(peer, now);
        if (std::exchange(peer.is_silent, false)) {
            for (route& each : peer.routes) each.alive = liveness(patience_, now);
            news_.push_back({peer.rank, peer_change::recovered});
        }
        if (on.alive.is_gone()) on.alive = liveness(patience_, now);
        on.alive.met(now);
        be_back_at(on.alive.due());
        on.line.holds() ? read(peer, on) : write(peer, on);
    }
    void unhook(peer_state& peer, route& on) noexcept {
        if (on.line) loop_.forget(on.line.on());
        on.line = detail::line();
        peer.talk.detach(on.number);
    }
    void read(peer_state& peer, route& on) {
        constexpr int most_reads = 8;  // then it is the turn of others
        deliveries::sink takes(delivered_, peer.rank);
        for (int i = 0; i < most_reads || on.line.holds(); ++i) {
            byte_span room[2];
            const std::size_t count = peer.talk.room(room, on.number);
            std::size_t size = 0;
            for (std::size_t k = 0; k < count; ++k) size += room[k].size();
            const ssize_t got = on.line.read(std::span(room, count));
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return miss(peer, on);
            const time_point now = wall_clock();
            if (contacts_of(on).dials(peer.rank)) contacts_of(on).stop(peer.rank);  // this connection was slow only
            try {
                peer.talk.arrived(static_cast<std::size_t>(got), takes, now, on.number);
            } catch (...) {  // what this peer says makes no sense
                lose(peer);
                throw;
            }
            on.alive.heard(now, peer.talk.awaits_answer(on.number));
            if (static_cast<std::size_t>(got) < size && !on.line.holds()) break;
        }
        write(peer, on);
        for (route& each : peer.routes)  // what has come may let others go on
            if (each.number != on.number && each.line && !each.wants_to_write) write(peer, each);
    }
    void write(peer_state& peer, bool acknowledges_now = false) {
        for (route& each : peer.routes) write(peer, each, acknowledges_now);
    }
    void write(peer_state& peer, route& on, bool acknowledges_now = false) {
        if (!on.line && peer.is_open && !peer.talk.is_idle()) return dial(peer, on, wall_clock());
        if (!on.line || on.is_deaf) return;
        const bool waited = on.wants_to_write;
        write_all(peer, on, acknowledges_now);
        if (waited != on.wants_to_write)
            loop_.change(on.line.on(), contacts::name_of_peer(peer.rank, on.number), on.wants_to_write);
        be_back_at(peer.talk.ack_due(on.number));
    }
    void write_all(peer_state& peer, route& on, bool acknowledges_now) {
        const time_point now = wall_clock();
        for (;;) {
            byte_view pieces[line::most_pieces];
            const std::size_t count = peer.talk.gather(pieces, acknowledges_now ? deadline::never.at : now, on.number);
            on.wants_to_write = count != 0 || on.line.owes();
            if (!on.wants_to_write) return;
            const ssize_t sent = on.line.write(std::span(pieces, count));
            if (sent >= 0) {
                peer.talk.wrote(static_cast<std::size_t>(sent), on.number);
                on.alive.spoke(now, peer.talk.awaits_answer(on.number));
                be_back_at(on.alive.due());
                continue;
            }
            if (errno != EAGAIN) {
                on.is_deaf = true;
                on.wants_to_write = false;
            }
            return;
        }
    }

    // Connections that are lost, or not yet made.

    void dial_all(peer_state& peer, time_point first) {
        for (route& each : peer.routes) dial(peer, each, first);
    }
    void dial(peer_state& peer, route& on, time_point first) {
        contacts& by = contacts_of(on);
        if (by.dials(peer.rank)) return;
        know(peer, wall_clock());
        const roster_entry& whom = mesh_.at(peer.rank);
        std::vector<socket_address> all;
        for (const roster_address& each : whom.addresses)
            if (each.card == on.number) all.push_back(socket_address_of(each));
        be_back_at(first);
        by.dial(peer.rank, all, whom.incarnation, first, *cards_[on.number]);
        be_back_at(by.due());
    }
    /// Another connection has to be made.
    void miss(peer_state& peer, route& on) {
        unhook(peer, on);
        if (delivered_.has_said_goodbye(peer.rank)) return shut(peer);
        dial(peer, on, mesh_.rank < peer.rank ? wall_clock() : wall_clock() + between_dials);
        if (peer.routes.size() > 1) write(peer);  // the others carry what was written on it
    }
    /// Nothing has come over this line for the whole patience.
    void be_silent(peer_state& peer, route& on, time_point now) {
        const auto is_gone = [](const route& each) { return each.alive.is_gone(); };
        if (!std::all_of(peer.routes.begin(), peer.routes.end(), is_gone)) {
            unhook(peer, on);
            return dial(peer, on, now);
        }
        if (!keeps_silent_) return lose(peer);
        // The connections are given up, and others are made as soon as the peer answers.
        peer.is_silent = true;
        news_.push_back({peer.rank, peer_change::silent});
        for (route& each : peer.routes) unhook(peer, each);
        dial_all(peer, now);
    }
    void lose(peer_state& peer) {
        if (peer.is_open && !delivered_.has_said_goodbye(peer.rank)) losses_.push_back(peer.rank);
        shut(peer);
    }
    /// Ends all that stands for messages from or to the peer.
    void shut(peer_state& peer) noexcept {
        if (!std::exchange(peer.is_open, false)) return;
        for (route& each : peer.routes) {
            unhook(peer, each);
            contacts_of(each).stop(peer.rank);
        }
        delivered_.end(peer.rank);
    }

    // What happens to dials and guests.

    std::uint64_t begin(peer_state& peer, std::size_t number) {
        unhook(peer, peer.routes[number]);
        return peer.talk.taken();
    }
    void dialled(peer_state& peer, std::size_t number, pending_connection&& made) {
        route& on = peer.routes[number];
        // The peer has given up the dials that it had begun before it took this one.
        on.newest_attempt = std::max(on.newest_attempt, made.said().peer().attempt);
        peer.talk.attach(made.said().peer_taken(), number) ? hook(peer, on, made.take()) : lose(peer);
    }
    void refused(peer_state& peer, const handshake& by) {
        using refusal = handshake::refusal;
        const bool is_gone = by.why() == refusal::incarnation || by.why() == refusal::taken;
        if (is_gone && by.is_proven()) lose(peer);  // there or here
    }
    void unreachable(peer_state& peer, std::size_t number, int rounds) {
        peer.routes[number].is_refused = rounds >= refusals_of_a_gone;
        const auto is_lost = [](const route& each) { return !each.line && each.is_refused; };
        if (std::all_of(peer.routes.begin(), peer.routes.end(), is_lost)) lose(peer);
    }
    void decide(pending_connection& guest, std::size_t number) {
        if (guest.said().peer().why == handshake::purpose::join) return admissions::decide(guest, *this);
        if (const handshake::refusal fault = fault_of(guest, number); fault != handshake::refusal::none)
            return guest.refuse(fault);
        peer_state& peer = at(guest.said().peer().rank);
        route& on = peer.routes[number];
        unhook(peer, on);
        contacts_of(on).stop(peer.rank);
        on.newest_attempt = guest.said().peer().attempt;
        if (peer.talk.attach(guest.said().peer_taken(), number)) return guest.accept(peer.talk.taken());
        guest.refuse(handshake::refusal::taken);
        lose(peer);
    }
    void came(pending_connection&& guest, bool is_told, std::size_t number) {
        if (guest.said().peer().why == handshake::purpose::join) {
            if (is_told) newcomers_.begin(std::move(guest));
            return;
        }
        peer_state& peer = at(guest.said().peer().rank);
        route& on = peer.routes[number];
        is_told ? hook(peer, on, guest.take()) : miss(peer, on);
    }
    handshake::refusal fault_of(const pending_connection& guest, std::size_t number) {
        using refusal = handshake::refusal;
        const handshake::identity& said = guest.said().peer();
        peer_state& peer = at(said.rank);
        if (!peer.is_open || said.incarnation != mesh_.at(said.rank).incarnation) return refusal::incarnation;
        if (number >= peer.routes.size()) return refusal::purpose;
        // A dial that the peer has given up since may prove itself late: it knows less than has been acknowledged. Of
        // several lines any may: meanwhile another one has acknowledged more.
        if (said.attempt <= peer.routes[number].newest_attempt ||
            (peer.routes.size() == 1 && guest.said().peer_taken() < peer.talk.acknowledged()))
            return refusal::stale;
        if (mesh_.rank < said.rank && cards_[number]->makes.has_proved(said.rank)) return refusal::crossed;
        return refusal::none;
    }

    // Newcomers.

    /// Listens at the meeting points of this host that nobody listens at. The rank that did may have ended.
    void listen_at_points(time_point now) {
        constexpr duration between_looks = seconds(1);
        for (const socket_address& each : mesh_.points)
            if (socket made = listen_at(each, SOMAXCONN)) cards_.front()->makes.listen_also(std::move(made));
        looks_at_points_ = now + between_looks;
        be_back_at(looks_at_points_);
    }
    handshake::refusal fault_of_newcomer(rank_t rank, std::uint64_t incarnation_of) override {
        using refusal = handshake::refusal;
        if (!mesh_.takes_newcomers) return refusal::purpose;
        peer_state& peer = at(rank);
        if (peer.is_open && incarnation(rank) == incarnation_of) return refusal::none;
        // All that the life before has said is taken before the next one begins.
        const bool is_told_of = std::find(losses_.begin(), losses_.end(), rank) == losses_.end();
        if (!peer.is_open && is_told_of && !delivered_.holds_words_of(rank)) return refusal::none;
        if (peer.is_open)
            for (route& each : peer.routes)
                if (!each.line) dial(peer, each, wall_clock());
        return refusal::seated;
    }
    void seat(roster_entry&& newcomer) override {
        const rank_t rank = newcomer.rank;
        if (at(rank).is_open) return;
        mesh_.at(rank) = std::move(newcomer);
        auto made = make_peer(rank);  // with as many lines as its network cards allow
        made->talk.follow(at(rank).talk);
        made->is_open = true;
        peers_[static_cast<std::size_t>(rank)] = std::move(made);
        delivered_.begin(rank);
        news_.push_back({rank, peer_change::arrived});
    }
    std::vector<roster_entry> seated() override {
        std::vector<roster_entry> all;
        for (const roster_entry& each : mesh_.roster)
            if (each.incarnation != 0 && (each.rank == mesh_.rank || at(each.rank).is_open)) all.push_back(each);
        return all;
    }

    mesh mesh_;
    duration farewell_{}, patience_{};
    loop loop_;
    std::vector<std::unique_ptr<card>> cards_;
    admissions newcomers_;
    deliveries delivered_;
    conversation::options talk_{};
    deadline timer_ = deadline::never;  ///< when something is due at the earliest
    deadline looks_at_points_ = deadline::never;
    std::vector<std::unique_ptr<peer_state>> peers_;
    std::deque<rank_t> losses_;         ///< not yet told
    std::deque<mail::peer_news> news_;  ///< not yet told
    bool keeps_silent_ = false;
};

static_assert(mail::MonitoringPort<connections>);

using engine = mail::engine<connections>;

}}}  // namespace rill::RILL_ABI::tcp::detail
