#pragma once

#include <rill/core/config.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_error.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_loop.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Makes the connections of one rank, of one of the lines that it has to each peer. It dials peers, each at all of its
/// addresses, in one round after the other, since the system may repeat a lost dial only after seconds. And it serves
/// guests: those that dial this rank. Its owner waits in the loop, passes on what the loop tells, decides about guests,
/// and takes the connections that are agreed.
class contacts {
  public:
    /// What happens to dials and guests. A call may dial and stop peers.
    class owner {
      public:
        /// A dial is about to prove itself: returns how many bytes of the conversation this rank has taken. The number
        /// must not change until that dial has ended, or another one of that peer begins.
        virtual std::uint64_t begin(rank_t peer) = 0;
        /// A dial has agreed. The peer is no longer dialled.
        virtual void dialled(rank_t peer, pending_connection&& made) = 0;
        /// A dial has been refused.
        virtual void refused(rank_t peer, const handshake& by) = 0;
        /// A dial is lost: the system's number, or 0 where the other end has closed it.
        virtual void lost(rank_t, int) {}
        /// All addresses of a peer have refused a connection, or belong to another rank or start by now, in so many
        /// rounds without a break.
        virtual void unreachable(rank_t, int) {}
        /// A guest has proved who it is: accepts or refuses it.
        virtual void decide(pending_connection& guest) = 0;
        /// A guest has been accepted; `is_told`: the system took the answer to it.
        virtual void came(pending_connection&& guest, bool is_told) = 0;
        /// A guest has been refused.
        virtual void turned_away(const pending_connection&) {}

      protected:
        ~owner() = default;
    };
    /// Of rounds to one peer.
    struct pace {
        duration again = milliseconds(150);         ///< after the last one, where it has no answer
        duration slow = milliseconds(150);          ///< the same after many rounds
        duration after_answer = milliseconds(100);  ///< after all dials of the last one have ended
    };

    /// Says `own` in handshakes. The loop, the key and TLS must outlive it.
    contacts(loop& in, const handshake::identity& own, const credentials& by, const pace& chosen)
        : loop_(in),
          own_(own),
          by_(by),
          pace_(chosen),
          guests_(own.ranks),
          targets_(static_cast<std::size_t>(own.ranks)) {}

    // Names in the loop.

    /// The name of the connection with a peer: `serve` leaves it to the owner.
    static std::uint64_t name_of_peer(rank_t peer, std::size_t line = 0) { return name_of(kind::peer, peer, line); }
    static rank_t peer_of(std::uint64_t name) { return static_cast<rank_t>(number_of(name)); }
    /// The line whose contacts `serve` a name.
    static std::size_t line_of(std::uint64_t name) { return static_cast<std::size_t>(name >> 48); }
    /// The name of a connection with a process that joins: `serve` leaves it to the owner, too.
    static std::uint64_t name_of_newcomer(const socket& on) { return name_of(kind::newcomer, on.get(), 0); }
    static bool is_newcomer(std::uint64_t name) { return kind_of(name) == kind::newcomer; }
    static int descriptor_of(std::uint64_t name) { return number_of(name); }

    // Dialling.

    /// Dials the peer at the addresses from `first` on, until a dial has agreed or `stop` is called. No effect where it
    /// is dialled already. Throws `library_error` where the system has no more sockets. `incarnation`: which start of
    /// the peer; 0 where that is not known. The rank itself as the peer stands for any rank that answers.
    void dial(rank_t peer, const std::vector<socket_address>& at, std::uint64_t incarnation, time_point first,
              owner& of) {
        target& to = target_of(peer);
        if (to.is_dialled) return;
        to = {.at = at,
              .incarnation = incarnation,
              .is_dialled = true,
              .again = first,
              .turns = std::vector<int>(at.size())};
        if (first <= wall_clock()) begin_round(peer, of);
    }
    bool dials(rank_t peer) const { return targets_[static_cast<std::size_t>(peer)].is_dialled; }
    /// Whether a dial to the peer has proved itself.
    bool has_proved(rank_t peer) const {
        return std::any_of(dials_.begin(), dials_.end(),
                           [=](const attempt& each) { return each.to == peer && each.has_proved; });
    }
    /// Gives up all dials to the peer.
    void stop(rank_t peer) noexcept {
        target_of(peer).is_dialled = false;
        dials_.remove_if([=](const attempt& each) { return each.to == peer; });
    }

    // Being dialled.

    void listen(std::vector<socket>&& at) {
        listeners_ = std::move(at);
        watch_listeners();
    }
    void listen_also(socket&& at) {
        listeners_.push_back(std::move(at));
        if (listens_at_.is_never()) watch_listener(listeners_.size() - 1);
    }
    /// Takes the listening sockets away, and closes the connections of guests.
    std::vector<socket> stop_listening() noexcept {
        for (const socket& each : listeners_) loop_.forget(each);
        guests_.waiting().clear();
        return std::move(listeners_);
    }

    /// The system's number for what it lacks to accept a guest that waits, such as a descriptor; 0 where none waits for
    /// that.
    int shortage() const { return shortage_; }

    // Going on.

    /// Goes on with what the loop has named; false where that is the connection with a peer.
    bool serve(std::uint64_t name, owner& to) {
        switch (kind_of(name)) {
            case kind::peer:
            case kind::newcomer: return false;
            case kind::listener: accept_some(listeners_[static_cast<std::size_t>(number_of(name))], to); break;
            case kind::guest: serve_guest(number_of(name), to); break;
            case kind::dial: serve_dial(number_of(name), to); break;
        }
        return true;
    }
    /// When `keep_time` has something to do at the earliest.
    deadline due() const {
        deadline next = listens_at_;
        if (!guests_.waiting().empty())
            next = std::min<deadline>(next, guests_.waiting().front().since() + reception::most_time);
        for (const target& each : targets_)
            if (each.is_dialled)
                next = std::min<deadline>(next, each.others_ask ? std::min(each.again, each.turn_ends) : each.again);
        return next;
    }
    /// Does what is due.
    void keep_time(time_point now, owner& of) {
        if (listens_at_.at <= now) watch_listeners();
        guests_.drop_late(now);
        for (rank_t peer = 0; peer < own_.ranks; ++peer) {
            if (has_overdue_turn(target_of(peer), now)) give_turn(peer, of);
            if (dials(peer) && target_of(peer).again <= now) begin_round(peer, of);
        }
    }

  private:
    using state = handshake::state;
    static constexpr int most_rounds = 8;    ///< of dials to one peer that are under way
    static constexpr int quick_rounds = 16;  ///< before the slow ones
    /// How long a dial that has proved itself has for the answer before another one that asks for a proof has its turn.
    static constexpr duration turn = milliseconds(1000);

    /// What a name stands for. Its lower half is the rank, the index, or the descriptor; its highest 16 bits the line.
    enum class kind : std::uint64_t { peer, listener, guest, dial, newcomer };
    static kind kind_of(std::uint64_t name) { return static_cast<kind>(name >> 32 & 0xffff); }
    static std::uint64_t name_of(kind which, int number, std::size_t line) {
        return std::uint64_t{line} << 48 | static_cast<std::uint64_t>(which) << 32 | static_cast<std::uint32_t>(number);
    }
    std::uint64_t own_name_of(kind which, int number) const { return name_of(which, number, own_.line); }
    static int number_of(std::uint64_t name) { return static_cast<int>(static_cast<std::uint32_t>(name)); }

    struct target {
        std::vector<socket_address> at{};
        std::uint64_t incarnation = 0;
        bool is_dialled = false;
        time_point again{};
        int round = 0, refused_rounds = 0;
        bool all_refuse = true;    ///< so far in this round
        std::vector<int> turns{};  ///< how often a dial has proved itself, by address
        time_point turn_ends{};    ///< of the dial that has proved itself
        bool others_ask = false;   ///< for a proof meanwhile
    };
    struct attempt {
        pending_connection on;
        rank_t to;
        std::size_t address;  ///< which one of the peer
        int round;
        bool has_proved = false;
    };

    target& target_of(rank_t peer) { return targets_[static_cast<std::size_t>(peer)]; }
    static bool lacks_sockets() { return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM; }
    void await(const pending_connection& which, kind as) {
        loop_.change(which.on(), own_name_of(as, which.on().get()), (which.wanted() & POLLOUT) != 0);
    }

    void begin_round(rank_t peer, owner& of) {
        target& to = target_of(peer);
        const time_point now = wall_clock();
        const int round = ++to.round;
        to.all_refuse = true;
        to.again = now + (round <= quick_rounds ? pace_.again : pace_.slow);
        dials_.remove_if([&](const attempt& each) {
            return each.to == peer && each.round <= round - most_rounds && !(each.has_proved && now < to.turn_ends);
        });
        int error = 0;
        for (std::size_t i = 0; i < to.at.size(); ++i) {
            ++own_.attempt;
            socket made = start_connecting(to.at[i]);
            if (!made && lacks_sockets())
                throw library_error(own_.rank, text_of({"cannot connect to rank ", peer, ": ", system_text()}));
            if (!made) {
                error = errno;
                to.all_refuse &= error == ECONNREFUSED;
                continue;
            }
            dials_.push_back(
                {.on = pending_connection::dialled(std::move(made), own_,
                                                   {peer == own_.rank ? no_rank : peer, to.incarnation}, by_, now),
                 .to = peer,
                 .address = i,
                 .round = round});
            const socket& on = dials_.back().on.on();
            loop_.watch(on, own_name_of(kind::dial, on.get()), true);
        }
        if (error != 0) of.lost(peer, error);
        end_round(peer, round, of);
    }
    /// Ends the round where it is the last one and none of its dials is left.
    void end_round(rank_t peer, int round, owner& of) {
        target& to = target_of(peer);
        if (!to.is_dialled || to.round != round) return;
        for (const attempt& each : dials_)
            if (each.to == peer && each.round == round) return;
        to.refused_rounds = to.all_refuse ? to.refused_rounds + 1 : 0;
        to.again = wall_clock() + pace_.after_answer;
        if (to.all_refuse) of.unreachable(peer, to.refused_rounds);
    }
    /// Whether a later dial to the same peer has proved itself. The peer may hear of that one after `which`, prefers
    /// it, and then ends the connection of `which`.
    bool proved_later_than(std::list<attempt>::const_iterator which) const {
        return std::any_of(std::next(which), dials_.end(),
                           [&](const attempt& each) { return each.to == which->to && each.has_proved; });
    }
    void serve_dial(int descriptor, owner& of) {
        const auto found = std::find_if(dials_.begin(), dials_.end(),
                                        [=](const attempt& each) { return each.on.on().get() == descriptor; });
        if (found == dials_.end()) return;
        bool goes_on = found->on.proceed();
        if (goes_on && found->on.now() == state::asks && proved_later_than(found)) {
            dials_.erase(found);  // no round ends by it: the later dial is of the same one or of a later one
            return;
        }
        if (goes_on && found->on.now() == state::asks) {
            target& to = target_of(found->to);
            if (has_proved(found->to) && wall_clock() < to.turn_ends) {
                to.others_ask = true;
                return loop_.forget(found->on.on());
            }
            goes_on = prove(found, of);
        }
        go_on(found, goes_on, of);
    }
    static bool has_overdue_turn(const target& to, time_point now) {
        return to.is_dialled && to.others_ask && to.turn_ends <= now;
    }
    /// Proves this rank to the other end of a dial, and gives up a dial that has done so before.
    bool prove(std::list<attempt>::iterator which, owner& of) {
        target& to = target_of(which->to);
        // Nothing may be taken behind this number, nor from a dial that has proved another one.
        const std::uint64_t taken = of.begin(which->to);
        dials_.remove_if([&](const attempt& each) { return each.to == which->to && each.has_proved; });
        which->has_proved = true;
        to.turn_ends = wall_clock() + turn;
        ++to.turns[which->address];
        which->on.prove(taken);
        return which->on.proceed();
    }
    /// Lets the next dial to the peer prove itself: of those that ask, and are later than the one that has proved
    /// itself before, one at an address that has had the fewest turns. So whoever else listens at one of several
    /// addresses, and does not answer, cannot keep this rank from the right one.
    void give_turn(rank_t peer, owner& of) {
        target& to = target_of(peer);
        auto next = dials_.end();
        int asking = 0;
        for (auto each = dials_.begin(); each != dials_.end(); ++each) {
            if (each->to != peer) continue;
            if (each->has_proved) {
                next = dials_.end();
                asking = 0;
            } else if (each->on.now() == state::asks) {
                ++asking;
                if (next == dials_.end() || to.turns[each->address] < to.turns[next->address]) next = each;
            }
        }
        to.others_ask = asking > 1;
        if (next == dials_.end()) return;
        loop_.watch(next->on.on(), own_name_of(kind::dial, next->on.on().get()), false);
        go_on(next, prove(next, of), of);
    }
    /// Waits for more from a dial, or ends it: `is_open`, or with the reason in `errno`.
    void go_on(std::list<attempt>::iterator found, bool is_open, owner& of) {
        if (is_open && !found->on.is_settled()) return await(found->on, kind::dial);
        const int error = is_open ? 0 : errno;
        attempt ended = std::move(*found);
        dials_.erase(found);
        if (is_open && ended.on.now() == state::agreed) {
            stop(ended.to);
            return of.dialled(ended.to, std::move(ended.on));
        }
        target& to = target_of(ended.to);
        // Whoever else listens there has the port of a process that has ended.
        const bool is_another = is_open && (ended.on.said().why() == handshake::refusal::rank ||
                                            ended.on.said().why() == handshake::refusal::incarnation);
        if (ended.round == to.round) to.all_refuse &= error == ECONNREFUSED || is_another;
        is_open ? of.refused(ended.to, ended.on.said()) : of.lost(ended.to, error);
        if (ended.has_proved && to.is_dialled) give_turn(ended.to, of);
        end_round(ended.to, ended.round, of);
    }

    void watch_listeners() {
        listens_at_ = deadline::never;
        for (std::size_t i = 0; i < listeners_.size(); ++i) watch_listener(i);
    }
    void watch_listener(std::size_t index) {
        loop_.watch(listeners_[index], own_name_of(kind::listener, static_cast<int>(index)), false);
    }
    void accept_some(const socket& listener, owner& to) {
        for (int i = 0; i < reception::most_at_once; ++i) {
            socket made(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (!made && (errno == EINTR || errno == ECONNABORTED)) continue;
            if (!made && errno == EAGAIN) {
                shortage_ = 0;
                return;
            }
            if (!made && !lacks_sockets())
                throw library_error(own_.rank, "cannot accept connections: " + system_text());
            if (!made) {
                shortage_ = errno;
                for (const socket& each : listeners_) loop_.forget(each);
                listens_at_ = wall_clock() + pace_.after_answer;
                return;
            }
            pending_connection guest = pending_connection::accepted(std::move(made), own_, by_, wall_clock());
            loop_.watch(guest.on(), own_name_of(kind::guest, guest.on().get()), false);
            // Its hello has most often come: fewer turns, fewer strangers that may push it out.
            if (stays(guest, to)) guests_.admit(std::move(guest));
        }
    }
    void serve_guest(int descriptor, owner& to) {
        auto& all = guests_.waiting();
        const auto found = std::find_if(all.begin(), all.end(),
                                        [=](const pending_connection& each) { return each.on().get() == descriptor; });
        if (found != all.end() && !stays(*found, to)) all.erase(found);
    }
    /// Whether the handshake with a guest goes on.
    bool stays(pending_connection& guest, owner& to) {
        bool goes_on = guest.proceed();
        if (goes_on && guest.now() == state::asks) {
            to.decide(guest);
            goes_on = guest.proceed();
        }
        if (guest.now() == state::agreed) {
            to.came(std::move(guest), goes_on && guest.is_settled());
            return false;
        }
        if (goes_on && !guest.is_settled()) {
            await(guest, kind::guest);
            return true;
        }
        if (goes_on) to.turned_away(guest);
        return false;
    }

    loop& loop_;
    handshake::identity own_;
    credentials by_;
    pace pace_;
    reception guests_;
    std::vector<socket> listeners_{};
    deadline listens_at_ = deadline::never;  ///< again, after a lack of sockets
    int shortage_ = 0;                       ///< why the system has refused the last guest; 0: it has not
    std::vector<target> targets_;            ///< by rank
    std::list<attempt> dials_{};
};

}}}  // namespace rill::RILL_ABI::tcp::detail
