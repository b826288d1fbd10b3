#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_turns.hpp>
#include <rill/transport/detail/tcp_admissions.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>
#include <rill/transport/detail/tcp_conversation.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_liveness.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_meeting.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
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
/// A connection is made when either end has something to say. One that is lost is dialled anew, by the lower rank at
/// once and by the other one a little later; the conversation goes on over it. A peer is gone when each of its
/// addresses has refused a connection twice, when it says that this rank counts as gone there, or when it has been
/// silent for `options::patience`. A rank notices this of the peers that it has or has had a connection with. It dials
/// the next rank at once, so that somebody notices it of each; what it notices, the mail engine tells all.
class connections final : contacts::owner {
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

    connections(mesh&& made, const options& chosen)
        : mesh_(std::move(made)),
          farewell_(chosen.farewell_timeout),
          patience_(chosen.patience),
          loop_(mesh_.rank, polling(mesh_.neighbours)),
          contacts_(loop_, mesh_.own, mesh_.security(), {.slow = std::max(contacts::pace().again, patience_ / 8)}),
          newcomers_(loop_, mesh_.ranks, mesh_.rank) {
        talk_.self = mesh_.rank;
        talk_.most.note_bytes = sizeof(mail::envelope) + chosen.eager_bytes;
        talk_.most.part_bytes = mail::most_part_bytes;
        talk_.window_bytes = chosen.window_bytes;
        for (rank_t peer = 0; peer < mesh_.ranks; ++peer) {
            peers_.push_back(make_peer(peer));
            peers_.back()->is_open = peer != mesh_.rank && incarnation(peer) != 0;
        }
    }

    const mesh& of() const { return mesh_; }
    loop& waits() { return loop_; }

    /// Lets peers dial this rank, and dials the one that it watches.
    void open() {
        contacts_.listen(std::move(mesh_.listeners));
        if (mesh_.ranks > 1) watch(next());
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

    /// The part goes on in other memory. False where it is not arriving.
    bool move(const place_of_part& given, byte_span to) {
        const auto found = std::find_if(peers_.begin(), peers_.end(),
                                        [&](const auto& each) { return given != nullptr && each->arriving == given; });
        if (found == peers_.end()) return false;
        given->into = to;
        (*found)->talk.move_part(to.first(given->how.size));
        return true;
    }
    void copy_all(rank_t to) { at(to).talk.copy_all(); }

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
    /// Makes a connection with the peer, by which its end is noticed.
    void watch(rank_t peer) {
        if (at(peer).is_open && !at(peer).is_known) dial(at(peer), wall_clock());
    }
    rank_t take_loss() { return take_first(losses_); }
    /// Of a peer whose notes have been taken.
    rank_t take_goodbye() { return notes_.empty() ? take_first(goodbyes_) : no_rank; }

    /// The start of a peer; 0 where nobody has taken its seat.
    std::uint64_t incarnation(rank_t peer) const {
        return peer == mesh_.rank ? mesh_.own.incarnation : mesh_.roster[static_cast<std::size_t>(peer)].incarnation;
    }
    /// From now on a peer that is silent for `options::patience` does not count as gone. It is dialled until it answers
    /// or its addresses refuse; the conversation then goes on.
    void keep_silent_peers() { keeps_silent_ = true; }
    mail::peer_news take_news() {
        if (news_.empty()) return {};
        const mail::peer_news first = news_.front();
        news_.pop_front();
        return first;
    }

    /// Says goodbye, waits a limited time until the peers have taken all that was sent, and closes.
    void leave() noexcept {
        try {
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
                notes_.clear();
            }
            for (auto& each : peers_)  // tells the peers what was taken of their last words
                if (each->is_open) write(*each, true);
        } catch (...) {  // what a peer still says does not matter
        }
        for (auto& each : peers_) shut(*each);
        contacts_.stop_listening();
    }

  private:
    static constexpr std::size_t most_spare = 64;
    static constexpr duration between_dials = milliseconds(100);  ///< of the lower and the higher rank
    static constexpr int refusals_of_a_gone = 2;                  ///< rounds in which every address refuses

    struct note {
        rank_t source = no_rank;
        std::vector<std::byte> bytes;
    };
    struct peer_state {
        peer_state(rank_t of, const conversation::options& chosen, duration patience)
            : rank(of), talk(chosen), alive(patience, wall_clock()) {}

        rank_t rank;
        conversation talk;
        liveness alive;
        detail::line line{};
        bool is_open = false, said_goodbye = false, wants_to_write = false;
        bool is_known = false;  ///< one has dialled the other
        bool is_silent = false;
        bool is_deaf = false;  ///< takes nothing more; what it has sent can still be read
        std::list<place_of_part> receives{};
        place_of_part arriving{};
        note coming{};
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
        void goodbye() {
            peer.said_goodbye = true;
            of.goodbyes_.push_back(peer.rank);
        }
    };

    /// Copies a part that came while its receive was given up.
    static void keep(receive& of) {
        if (!of.own.empty()) std::memcpy(of.into.data(), of.own.data(), of.own.size());
        of.own = {};
    }

    static rank_t take_first(std::vector<rank_t>& of) {
        if (of.empty()) return no_rank;
        const rank_t first = of.front();
        of.erase(of.begin());
        return first;
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
        return std::make_unique<peer_state>(rank, talk, patience_);
    }

    void serve(std::uint64_t name, std::uint32_t events) {
        if (contacts_.serve(name, *this)) return be_back_at(contacts_.due());
        if (contacts::is_newcomer(name))
            return newcomers_.serve(contacts::descriptor_of(name),
                                    [this](const admissions::newcomer& who) { admit(who); });
        peer_state& peer = at(contacts::peer_of(name));
        if (peer.line && (events & EPOLLOUT) != 0) write(peer);
        if (peer.line && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read(peer);
    }
    /// Does what is due by now.
    void keep_time() {
        const time_point now = wall_clock();
        if (now < timer_.at) return;
        timer_ = now + between_dials;  // where something throws
        contacts_.keep_time(now, *this);
        newcomers_.drop_late(now);
        deadline next = deadline::never;
        for (auto& each : peers_) {
            peer_state& peer = *each;
            if (!peer.is_known) continue;
            for (auto due = liveness_step::heartbeat; peer.is_open && due != liveness_step::nothing;)
                switch (due = peer.alive.tick(now)) {
                    case liveness_step::nothing: break;
                    case liveness_step::heartbeat:
                        peer.talk.say_heartbeat();
                        write(peer);
                        break;
                    case liveness_step::dial: dial(peer, now); break;
                    case liveness_step::gone: keeps_silent_ ? fall_silent(peer, now) : lose(peer); break;
                }
            if (peer.is_open && peer.talk.ack_due().at <= now) write(peer);
            if (peer.is_open) next = std::min({next, peer.talk.ack_due(), peer.alive.due()});
        }
        timer_ = std::min(next, contacts_.due());
    }
    void be_back_at(deadline when) {
        if (timer_ <= when) return;
        timer_ = when;
        loop_.hurry();
    }

    // Connections that stand.

    void know(peer_state& peer, time_point now) {
        if (!std::exchange(peer.is_known, true)) peer.alive = liveness(patience_, now);
    }
    void hook(peer_state& peer, line made) {
        const time_point now = wall_clock();
        peer.line = std::move(made);
        tune(peer.line.on(), patience_);
        peer.is_deaf = peer.wants_to_write = false;
        loop_.change(peer.line.on(), contacts::name_of_peer(peer.rank), false);
        know(peer, now);
        if (std::exchange(peer.is_silent, false)) {
            peer.alive = liveness(patience_, now);
            news_.push_back({peer.rank, peer_change::recovered});
        }
        peer.alive.met(now);
        be_back_at(peer.alive.due());
        peer.line.holds() ? read(peer) : write(peer);
    }
    void unhook(peer_state& peer) noexcept {
        if (peer.line) loop_.forget(peer.line.on());
        peer.line = detail::line();
        peer.talk.detach();
    }
    void read(peer_state& peer) {
        constexpr int most_reads = 8;  // then it is the turn of others
        sink takes{*this, peer};
        for (int i = 0; i < most_reads || peer.line.holds(); ++i) {
            byte_span room[2];
            const std::size_t count = peer.talk.room(room);
            std::size_t size = 0;
            for (std::size_t k = 0; k < count; ++k) size += room[k].size();
            const ssize_t got = peer.line.read(std::span(room, count));
            if (got < 0 && errno == EAGAIN) break;
            if (got <= 0) return miss(peer);
            const time_point now = wall_clock();
            if (contacts_.dials(peer.rank)) contacts_.stop(peer.rank);  // this connection was slow only
            try {
                peer.talk.arrived(static_cast<std::size_t>(got), takes, now);
            } catch (...) {  // what this peer says makes no sense
                lose(peer);
                throw;
            }
            peer.alive.heard(now, peer.talk.awaits_answer());
            if (static_cast<std::size_t>(got) < size && !peer.line.holds()) break;
        }
        write(peer);
    }
    void write(peer_state& peer, bool acknowledges_now = false) {
        if (!peer.line && peer.is_open && !peer.talk.is_idle()) return dial(peer, wall_clock());
        if (!peer.line || peer.is_deaf) return;
        const bool waited = peer.wants_to_write;
        write_all(peer, acknowledges_now);
        if (waited != peer.wants_to_write)
            loop_.change(peer.line.on(), contacts::name_of_peer(peer.rank), peer.wants_to_write);
        be_back_at(peer.talk.ack_due());
    }
    void write_all(peer_state& peer, bool acknowledges_now) {
        const time_point now = wall_clock();
        for (;;) {
            byte_view pieces[line::most_pieces];
            const std::size_t count = peer.talk.gather(pieces, acknowledges_now ? deadline::never.at : now);
            peer.wants_to_write = count != 0 || peer.line.owes();
            if (!peer.wants_to_write) return;
            const ssize_t sent = peer.line.write(std::span(pieces, count));
            if (sent >= 0) {
                peer.talk.wrote(static_cast<std::size_t>(sent));
                peer.alive.spoke(now, peer.talk.awaits_answer());
                be_back_at(peer.alive.due());
                continue;
            }
            if (errno != EAGAIN) {
                peer.is_deaf = true;
                peer.wants_to_write = false;
            }
            return;
        }
    }

    // Connections that are lost, or not yet made.

    void dial(peer_state& peer, time_point first) {
        if (contacts_.dials(peer.rank)) return;
        know(peer, wall_clock());
        const roster_entry& whom = mesh_.roster[static_cast<std::size_t>(peer.rank)];
        std::vector<socket_address> all;
        for (const roster_address& each : whom.addresses) all.push_back(socket_address_of(each));
        be_back_at(first);
        contacts_.dial(peer.rank, all, whom.incarnation, first, *this);
        be_back_at(contacts_.due());
    }
    /// Another connection has to be made.
    void miss(peer_state& peer) {
        unhook(peer);
        if (peer.said_goodbye) return shut(peer);
        dial(peer, mesh_.rank < peer.rank ? wall_clock() : wall_clock() + between_dials);
    }
    /// The connection is given up, and another one made as soon as the peer answers.
    void fall_silent(peer_state& peer, time_point now) {
        peer.is_silent = true;
        news_.push_back({peer.rank, peer_change::silent});
        unhook(peer);
        dial(peer, now);
    }
    void lose(peer_state& peer) {
        if (peer.is_open && !peer.said_goodbye) losses_.push_back(peer.rank);
        shut(peer);
    }
    /// Ends all that stands for messages from or to the peer.
    void shut(peer_state& peer) noexcept {
        if (!std::exchange(peer.is_open, false)) return;
        unhook(peer);
        contacts_.stop(peer.rank);
        const auto end = [](const place_of_part& each) {
            each->ended = true;
            each->how = {};
        };
        for (const place_of_part& each : peer.receives) end(each);
        peer.receives.clear();
        if (peer.arriving != nullptr) end(peer.arriving);
        peer.arriving = nullptr;
    }

    // What happens to dials and guests.

    std::uint64_t begin(rank_t peer) override {
        unhook(at(peer));
        return at(peer).talk.taken();
    }
    void dialled(rank_t rank, pending_connection&& made) override {
        peer_state& peer = at(rank);
        // The peer has given up the dials that it had begun before it took this one.
        peer.newest_attempt = std::max(peer.newest_attempt, made.said().peer().attempt);
        peer.talk.attach(made.said().peer_taken()) ? hook(peer, made.take()) : lose(peer);
    }
    void refused(rank_t peer, const handshake& by) override {
        using refusal = handshake::refusal;
        const bool is_gone = by.why() == refusal::incarnation || by.why() == refusal::taken;
        if (is_gone && by.is_proven()) lose(at(peer));  // there or here
    }
    void unreachable(rank_t peer, int rounds) override {
        if (!at(peer).line && rounds >= refusals_of_a_gone) lose(at(peer));
    }
    void decide(pending_connection& guest) override {
        if (guest.said().peer().why == handshake::purpose::join) {
            const handshake::refusal fault =
                fault_of_newcomer(guest.said().peer().rank, guest.said().peer().incarnation);
            return fault == handshake::refusal::none ? guest.accept(0) : guest.refuse(fault);
        }
        if (const handshake::refusal fault = fault_of(guest); fault != handshake::refusal::none)
            return guest.refuse(fault);
        peer_state& peer = at(guest.said().peer().rank);
        unhook(peer);
        contacts_.stop(peer.rank);
        peer.newest_attempt = guest.said().peer().attempt;
        if (peer.talk.attach(guest.said().peer_taken())) return guest.accept(peer.talk.taken());
        guest.refuse(handshake::refusal::taken);
        lose(peer);
    }
    void came(pending_connection&& guest, bool is_told) override {
        if (guest.said().peer().why == handshake::purpose::join) {
            if (is_told) newcomers_.begin(std::move(guest));
            return;
        }
        peer_state& peer = at(guest.said().peer().rank);
        is_told ? hook(peer, guest.take()) : miss(peer);
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
        if (mesh_.rank < said.rank && contacts_.has_proved(said.rank)) return refusal::crossed;
        return refusal::none;
    }

    // Newcomers.

    handshake::refusal fault_of_newcomer(rank_t rank, std::uint64_t incarnation_of) {
        using refusal = handshake::refusal;
        if (!mesh_.takes_newcomers) return refusal::purpose;
        peer_state& peer = at(rank);
        if (peer.is_open && incarnation(rank) == incarnation_of) return refusal::none;  // it has been admitted
        // All that the life before has said is taken before the next one begins.
        const auto is_of_it = [&](const note& each) { return each.source == rank; };
        const auto is_it = [&](const std::vector<rank_t>& all) {
            return std::find(all.begin(), all.end(), rank) != all.end();
        };
        if (!peer.is_open && !is_it(losses_) && !is_it(goodbyes_) &&
            std::none_of(notes_.begin(), notes_.end(), is_of_it))
            return refusal::none;
        if (peer.is_open && !peer.line) dial(peer, wall_clock());
        return refusal::seated;
    }
    void admit(const admissions::newcomer& who) {
        const char* differs = nullptr;
        roster_entry entry = who.words.entry(mesh_.alike, who.incarnation, differs);
        if (differs != nullptr)
            return who.on.write_last(meeting_word::of_refusal(
                failure::mismatch, text_of({"rank ", who.rank, " has another value of ", differs})));
        if (fault_of_newcomer(who.rank, who.incarnation) != handshake::refusal::none) return;
        if (!at(who.rank).is_open) {
            scope_link_local(entry, socket_address::local_of(who.on.on()).scope());
            auto made = make_peer(who.rank);
            made->talk.follow(at(who.rank).talk);
            made->is_open = true;
            peers_[static_cast<std::size_t>(who.rank)] = std::move(made);
            mesh_.roster[static_cast<std::size_t>(who.rank)] = std::move(entry);
            news_.push_back({who.rank, peer_change::arrived});
        }
        std::vector<roster_entry> there;
        for (const roster_entry& each : mesh_.roster)
            if (each.incarnation != 0 && (each.rank == mesh_.rank || at(each.rank).is_open)) there.push_back(each);
        who.on.write_last(meeting_word::of_roster(there));
    }
    mesh mesh_;
    duration farewell_{}, patience_{};
    loop loop_;
    contacts contacts_;
    admissions newcomers_;
    conversation::options talk_{};
    deadline timer_ = deadline::never;  ///< when something is due at the earliest
    std::vector<std::unique_ptr<peer_state>> peers_;
    std::deque<note> notes_;
    std::vector<std::vector<std::byte>> spare_;
    std::vector<rank_t> losses_, goodbyes_;  ///< not yet told
    std::deque<mail::peer_news> news_;       ///< not yet told
    bool keeps_silent_ = false;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
