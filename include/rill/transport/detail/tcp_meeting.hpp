// How the ranks of a job come together.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_framing.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_key.hpp>
#include <rill/transport/detail/tcp_line.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_roster.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// The connections of one rank to all others, and what it takes to make one anew.
struct mesh {
    rank_t rank = 0;
    int ranks = 1;
    int neighbours = 1;                  ///< ranks of this host, this one included
    std::vector<line> to_peers{};        ///< by rank; that to itself is empty
    std::vector<socket> listeners{};     ///< where peers reach this rank
    std::vector<roster_entry> roster{};  ///< by rank: where this rank reaches its peers
    handshake::identity own{};           ///< says `purpose::mail`
    tcp::key secret{};
};

inline roster_address roster_address_of(const socket_address& from) {
    roster_address made{.is_v6 = from.is_v6(), .port = from.port()};
    if (made.is_v6) {
        const auto& raw = reinterpret_cast<const sockaddr_in6&>(from.bytes);
        std::memcpy(made.bytes.data(), &raw.sin6_addr, 16);
        made.scope = raw.sin6_scope_id;
    } else {
        std::memcpy(made.bytes.data(), &reinterpret_cast<const sockaddr_in&>(from.bytes).sin_addr, 4);
    }
    return made;
}
inline socket_address socket_address_of(const roster_address& from) {
    socket_address made;
    if (from.is_v6) {
        auto& raw = reinterpret_cast<sockaddr_in6&>(made.bytes);
        raw.sin6_family = AF_INET6;
        std::memcpy(&raw.sin6_addr, from.bytes.data(), 16);
        raw.sin6_scope_id = from.scope;
        made.size = sizeof raw;
    } else {
        auto& raw = reinterpret_cast<sockaddr_in&>(made.bytes);
        raw.sin_family = AF_INET;
        std::memcpy(&raw.sin_addr, from.bytes.data(), 4);
        made.size = sizeof raw;
    }
    made.set_port(from.port);
    return made;
}

/// Brings the ranks together: each connects to rank 0, which tells all where all listen; then each connects to the
/// ranks below it. The deadline is that of the whole meeting: no arrival prolongs it. Who dials and does not prove that
/// it has the job's key changes nothing but the text of an error.
class meeting {
  public:
    explicit meeting(const options& chosen) : chosen_(chosen), until_(wall_clock() + chosen.meeting_timeout) {
        made_.rank = chosen.rank;
        made_.ranks = chosen.ranks;
        made_.to_peers.resize(static_cast<std::size_t>(chosen.ranks));
        if (chosen.security == security::keyed) made_.secret = chosen.key;
        made_.own = {.why = handshake::purpose::mail,
                     .job = hash_of(chosen.job),
                     .build = mix64(mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR), RILL_VERSION_PATCH),
                     .ranks = chosen.ranks,
                     .rank = chosen.rank,
                     .incarnation = random_number() | 1};
    }

    mesh run() {
        if (chosen_.ranks == 1) return std::move(made_);
        if (chosen_.rank == 0)
            gather();
        else
            join();
        for (const roster_entry& each : made_.roster)
            if (each.rank != made_.rank && each.host == entry_of(made_.rank).host) ++made_.neighbours;
        for (const line& each : made_.to_peers)
            if (each) tune(each.on(), chosen_.patience);
        return std::move(made_);
    }

  private:
    using state = handshake::state;
    using refusal = handshake::refusal;

    static constexpr duration again_after = milliseconds(250);  ///< of a dial that nobody answers: Linux waits for 1 s
    static constexpr duration again_after_refusal = milliseconds(20);
    static constexpr std::size_t most_rounds = 8;  ///< of dials that are under way

    /// A rank that this one dials: at all of its addresses, side by side.
    struct target {
        rank_t rank = 0;
        std::uint64_t incarnation = 0;  ///< 0: not known
        std::vector<socket_address> at{};
        handshake::purpose why = handshake::purpose::mail;
        time_point again{};
        std::list<pending_connection> dials{};
        bool is_proving = false;  ///< on its only dial
        std::string trouble{};
    };
    /// What rank 0 knows of a rank that has proved who it is.
    struct newcomer {
        meeting_reader words;
        std::uint64_t incarnation = 0;
        bool has_told = false;
    };

    static std::uint64_t hash_of(std::string_view text) {
        std::uint64_t hash = 0;
        for (const char each : text) hash = mix64(hash, static_cast<unsigned char>(each));
        return hash;
    }
    static std::string host_name() {
        char name[roster_entry::most_host + 1] = "";
        ::gethostname(name, sizeof name - 1);
        return name[0] == 0 ? "localhost" : name;
    }
    static std::string name_of(rank_t rank) { return "rank " + std::to_string(rank); }

    std::string within() const { return text_of({" within ", chosen_.meeting_timeout.seconds(), " s"}); }
    [[noreturn]] void fail(const std::string& what) const { throw library_error(chosen_.rank, what); }
    [[noreturn]] static void fail_for_all(failure kind, const std::string& text) {
        throw_error({.context = every_context, .kind = kind, .reason = text});
    }
    std::array<meeting_word::option, 3> equal_options() const {
        return {{{"eager_bytes", chosen_.eager_bytes},
                 {"chunk_bytes", chosen_.chunk_bytes},
                 {"mailbox_bytes", chosen_.mailbox_bytes}}};
    }
    roster_entry& entry_of(rank_t rank) { return made_.roster[static_cast<std::size_t>(rank)]; }
    line& line_to(rank_t rank) { return made_.to_peers[static_cast<std::size_t>(rank)]; }

    std::vector<socket_address> addresses() const {
        std::vector<socket_address> all = resolve(chosen_.meeting, chosen_.rank);
        if (made_.secret || chosen_.security == security::open) return all;
        for (const socket_address& each : all)
            if (!each.is_loopback())
                fail("the meeting point " + chosen_.meeting +
                     " is not on the loopback interface, and there is no key: tools/launch --make-key makes one");
        return all;
    }
    handshake::identity identity_for(handshake::purpose why) {
        ++made_.own.attempt;
        handshake::identity own = made_.own;
        own.why = why;
        return own;
    }

    // What all ranks do: dial, and serve those that dial.

    /// Waits until something happens, at most until `until`, and lets all dials and guests proceed. `also` are further
    /// descriptors to wait for. Calls `arrived(guest)` for each guest that asks or has settled; it closes a settled
    /// one.
    template <class Arrived>
    void take_turn(time_point until, std::vector<pollfd>& also, Arrived&& arrived) {
        time_point now = wall_clock();
        guests_.drop_late(now);
        for (target& each : targets_) {
            dial(each, now);
            if (!each.is_proving) until = std::min(until, each.again);
        }
        std::vector<pollfd>& polled = polled_;
        polled.assign(also.begin(), also.end());
        const auto add = [&](int descriptor, short events) {
            polled.push_back({.fd = descriptor, .events = events, .revents = 0});
        };
        for (const socket& each : made_.listeners) add(each.get(), POLLIN);
        for (const pending_connection& each : guests_.waiting()) add(each.on().get(), each.wanted());
        for (const target& each : targets_)
            for (const pending_connection& one : each.dials) add(one.on().get(), one.wanted());
        wait_for(polled, until);

        std::copy_n(polled.begin(), also.size(), also.begin());
        std::size_t at = also.size() + made_.listeners.size();
        for (auto each = guests_.waiting().begin(); each != guests_.waiting().end();) {
            const auto here = each++;
            if (polled[at++].revents == 0) continue;
            if (!stays(*here, arrived)) guests_.waiting().erase(here);
        }
        now = wall_clock();
        for (target& each : targets_) proceed(each, at, now);
        std::erase_if(targets_, [&](const target& each) { return bool(line_to(each.rank)); });
        for (std::size_t i = 0; i < made_.listeners.size(); ++i)
            if (polled[also.size() + i].revents != 0) accept_guests(made_.listeners[i], now, arrived);
    }
    /// Whether the handshake with a guest goes on.
    template <class Arrived>
    static bool stays(pending_connection& with, Arrived& arrived) {
        bool goes_on = with.proceed();
        if (goes_on && with.now() == state::asks) {
            arrived(with);
            goes_on = with.proceed();
        }
        if (!goes_on || !with.is_settled()) return goes_on;
        arrived(with);
        return false;
    }
    template <class Arrived>
    void accept_guests(const socket& listener, time_point now, Arrived& arrived) {
        for (int i = 0; i < reception::most_at_once; ++i) {
            socket from(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (from) {
                const auto why = chosen_.rank == 0 ? handshake::purpose::meeting : handshake::purpose::mail;
                auto made =
                    pending_connection::accepted(std::move(from), identity_for(why), made_.secret.prover(), now);
                // Its hello has most often come: fewer turns, fewer strangers that may push it out.
                if (stays(made, arrived)) guests_.admit(std::move(made));
                continue;
            }
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                fail("cannot accept a connection: " + system_text());
            if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) fail("the listening socket has failed");
            if (errno != EINTR && errno != ECONNABORTED) return;
        }
    }

    void dial(target& to, time_point now) {
        if (to.is_proving && to.dials.front().since() + reception::most_time <= now) {
            to.dials.clear();
            to.is_proving = false;
        }
        if (to.is_proving || now < to.again) return;
        to.again = now + again_after;
        while (to.dials.size() >= most_rounds * to.at.size()) to.dials.pop_front();
        for (const socket_address& each : to.at) {
            socket made = start_connecting(each);
            if (made)
                to.dials.push_back(pending_connection::dialled(std::move(made), identity_for(to.why),
                                                               {.rank = to.rank, .incarnation = to.incarnation},
                                                               made_.secret.prover(), now));
            else
                to.trouble = system_text();
        }
        if (to.dials.empty()) to.again = now + again_after_refusal;
    }
    /// The dials of a target; their results are in `polled_` from `at` on.
    void proceed(target& to, std::size_t& at, time_point now) {
        const std::size_t count = to.dials.size();
        const std::size_t first = at;
        at += count;
        auto each = to.dials.begin();
        for (std::size_t i = first; i < first + count; ++i) {
            const auto here = each++;
            if (polled_[i].revents == 0) continue;
            bool goes_on = here->proceed();
            if (!goes_on) to.trouble = errno == 0 ? "the connection was closed" : system_text();
            if (goes_on && here->now() == state::asks) {
                to.dials.erase(to.dials.begin(), here);
                to.dials.erase(each, to.dials.end());
                to.is_proving = true;
                here->prove(0);
                goes_on = here->proceed();
                i = first + count;  // it is the only one
            }
            if (goes_on && here->now() == state::refused) {
                to.trouble = refusal_of(to, here->said());
                if (is_final(here->said().why(), to, here->said().peer())) fail_for_all(failure::mismatch, to.trouble);
                goes_on = false;
            }
            if (goes_on && here->is_settled()) {
                line_to(to.rank) = here->take();
                return;
            }
            if (goes_on) continue;
            to.dials.erase(here);
            to.is_proving = false;
            if (to.dials.empty()) to.again = now + again_after_refusal;
        }
    }

    /// Why a rank that dialled does not fit to the one that it dialled.
    static std::string mismatch_of(refusal why, const handshake::identity& dialled, const handshake::identity& by) {
        const std::string who = name_of(by.rank), other = name_of(dialled.rank);
        switch (why) {
            case refusal::version: return who + " has another version of rill";
            case refusal::job: return who + " belongs to another job";
            case refusal::build: return who + " has another version of rill";
            case refusal::ranks: return text_of({who, " expects ", by.ranks, " ranks, ", other, " ", dialled.ranks});
            case refusal::rank:
                return by.rank == dialled.rank ? "two processes say that they are " + who : who + " is none of the job";
            case refusal::purpose: return "the ranks have met already";
            case refusal::key: return who + " has another key than " + other;
            default: return text_of({other, " refuses ", who, ", reason ", static_cast<int>(why)});
        }
    }
    /// Whether no later dial can succeed. Else somebody else than the target has answered, or the target in a meeting
    /// that is over, or it has not noticed yet that an earlier connection is lost.
    static bool is_final(refusal why, const target& to, const handshake::identity& peer) {
        switch (why) {
            case refusal::version:
            case refusal::security:
            case refusal::job:
            case refusal::build:
            case refusal::ranks:
            case refusal::key: return true;
            case refusal::rank: return peer.rank == to.rank;
            default: return false;
        }
    }
    std::string refusal_of(const target& to, const handshake& by) const {
        if (by.why() == refusal::foreign) return "what answers is no rank of a job";
        if (by.why() == refusal::incarnation) return "what answers is another start of " + name_of(to.rank);
        if (by.why() == refusal::rank && by.peer().rank != to.rank) return "what answers is " + name_of(by.peer().rank);
        if (by.why() == refusal::security)
            return made_.secret ? name_of(made_.rank) + " has a key, " + name_of(to.rank) + " has none"
                                : name_of(made_.rank) + " has no key, " + name_of(to.rank) + " has one";
        handshake::identity dialled = by.peer();
        dialled.rank = to.rank;  // not yet read where the protocols differ
        return mismatch_of(by.why(), dialled, made_.own);
    }

    // Rank 0.

    void gather() {
        for (const socket_address& each : addresses())
            if (socket made = listen_at(each, SOMAXCONN)) made_.listeners.push_back(std::move(made));
        if (made_.listeners.empty()) fail("cannot listen at " + chosen_.meeting + ": " + system_text());
        made_.roster.resize(static_cast<std::size_t>(chosen_.ranks));
        entry_of(0) = own_entry();
        for (rank_t peer = 0; peer < chosen_.ranks; ++peer) come_.push_back(expected(peer));
        std::vector<pollfd> polled;
        std::vector<rank_t> of;
        while (missing() != 0) {
            if (wall_clock() >= until_) refuse_all(failure::timeout, who_is_missing());
            polled.clear();
            of.clear();
            for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
                if (line_to(peer)) {
                    polled.push_back({.fd = line_to(peer).on().get(), .events = POLLIN, .revents = 0});
                    of.push_back(peer);
                }
            take_turn(until_, polled, [&](pending_connection& each) { welcome(each); });
            for (std::size_t i = 0; i < of.size(); ++i)
                if (polled[i].revents != 0 && line_to(of[i]).on().get() == polled[i].fd) listen_to(of[i]);
        }
        const std::vector<std::byte> roster = meeting_word::of_roster(made_.roster);
        for (rank_t peer = 1; peer < chosen_.ranks; ++peer) send_all(peer, roster);
    }

    newcomer expected(rank_t peer) const { return {.words = meeting_reader(chosen_.ranks, 0, peer)}; }
    std::size_t missing() const {
        return come_.size() - 1 -
               static_cast<std::size_t>(
                   std::count_if(come_.begin(), come_.end(), [](const newcomer& each) { return each.has_told; }));
    }
    std::string who_is_missing() const {
        std::string who, more;
        for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
            if (!come_[static_cast<std::size_t>(peer)].has_told) {
                more = who.empty() ? "" : "s";
                who += (who.empty() ? "" : ", ") + std::to_string(peer);
            }
        return "rank" + more + " " + who + (more.empty() ? " has" : " have") + " not come to " + chosen_.meeting +
               within() + (stranger_.empty() ? "" : ": " + stranger_);
    }

    /// A guest asks or has settled.
    void welcome(pending_connection& by) {
        const handshake::identity& peer = by.said().peer();
        if (by.now() == state::asks) return by.accept(0);
        if (by.now() == state::refused) {
            const refusal why = by.said().why();
            if (why == refusal::key) stranger_ = mismatch_of(why, made_.own, peer);
            if (why == refusal::security)
                stranger_ = std::string("a process came ") + (made_.secret ? "without a key" : "with a key");
            if (why == refusal::version) stranger_ = "a process with another version of rill came";
            // One that exchanges mail was in a job that has been here before.
            if (by.said().is_proven() && peer.why == handshake::purpose::meeting)
                refuse_all(failure::mismatch, mismatch_of(why, made_.own, peer));
            return;
        }
        newcomer& its = come_[static_cast<std::size_t>(peer.rank)];
        detail::line& line = line_to(peer.rank);
        if (line && its.incarnation != peer.incarnation) {
            const std::string text = "two processes say that they are " + name_of(peer.rank);
            tell_refusal(by.take(), failure::mismatch, text);
            refuse_all(failure::mismatch, text);
        }
        its = expected(peer.rank);
        its.incarnation = peer.incarnation;
        line = by.take();
    }
    /// Reads what a rank tells that has proved who it is.
    void listen_to(rank_t peer) {
        newcomer& its = come_[static_cast<std::size_t>(peer)];
        try {
            if (its.has_told || !read(its.words, line_to(peer))) {  // it is lost, and may come again
                line_to(peer) = detail::line();
                its = expected(peer);
                return;
            }
            if (!its.words.is_whole()) return;
            const char* differs = nullptr;
            entry_of(peer) = its.words.entry(equal_options(), its.incarnation, differs);
            if (differs != nullptr) refuse_all(failure::mismatch, name_of(peer) + " has another value of " + differs);
        } catch (const protocol_error& caught) {
            tell_all(failure::protocol, caught.notice().reason);
            throw;
        }
        its.has_told = true;
    }

    static void tell_refusal(const line& to, failure kind, const std::string& text) {
        const std::vector<std::byte> bytes = meeting_word::of_refusal(kind, text);
        to.write(bytes);  // an empty buffer of the system takes it whole
        ::shutdown(to.on().get(), SHUT_WR);
        std::byte rest[1024];  // what is not read would take the refusal away
        while (to.read(rest) > 0) {
        }
    }
    void tell_all(failure kind, const std::string& text) const {
        for (const line& each : made_.to_peers)
            if (each) tell_refusal(each, kind, text);
    }
    [[noreturn]] void refuse_all(failure kind, const std::string& text) const {
        tell_all(kind, text);
        fail_for_all(kind, text);
    }

    // The others.

    void join() {
        targets_.push_back({.rank = 0, .at = addresses(), .why = handshake::purpose::meeting});
        std::vector<pollfd> polled;
        const auto nobody = [](pending_connection&) {};
        while (!line_to(0)) {
            if (wall_clock() >= until_) throw_absent(0, "rank 0 has not come to " + chosen_.meeting + within());
            take_turn(until_, polled, nobody);
        }
        socket_address here = socket_address::local_of(line_to(0).on());
        here.set_port(0);
        socket listener = listen_at(here, SOMAXCONN);
        if (!listener) fail("cannot listen: " + system_text());
        here = socket_address::local_of(listener);
        roster_entry own = own_entry();
        own.addresses = {roster_address_of(here)};
        send_all(0, meeting_word::of_entry(equal_options(), own));
        receive_roster();
        // The addresses of rank 0 are those by which this rank has reached it.
        entry_of(0).addresses = {roster_address_of(socket_address::peer_of(line_to(0).on()))};
        made_.listeners.push_back(std::move(listener));

        for (rank_t peer = 1; peer < chosen_.rank; ++peer) {
            target& made = targets_.emplace_back(target{.rank = peer, .incarnation = entry_of(peer).incarnation});
            for (const roster_address& each : entry_of(peer).addresses) made.at.push_back(socket_address_of(each));
        }
        for (rank_t peer = first_unconnected(); peer != no_rank; peer = first_unconnected()) {
            if (wall_clock() >= until_) {
                const bool was_dialled = peer < chosen_.rank;
                throw_absent(peer,
                             was_dialled
                                 ? text_of({"rank ", chosen_.rank, " cannot connect to rank ", peer, within()})
                                 : text_of({"rank ", peer, " has not connected to rank ", chosen_.rank, within()}));
            }
            take_turn(until_, polled, [&](pending_connection& each) { admit(each); });
        }
    }
    rank_t first_unconnected() {
        for (rank_t peer = 0; peer < chosen_.ranks; ++peer)
            if (peer != chosen_.rank && !line_to(peer)) return peer;
        return no_rank;
    }
    /// Somebody dials this rank: it must be a rank above it, in the incarnation that has met rank 0.
    void admit(pending_connection& by) {
        const handshake::identity& peer = by.said().peer();
        if (by.now() == state::agreed) line_to(peer.rank) = by.take();
        if (by.now() != state::asks) return;
        if (peer.rank < chosen_.rank) return by.refuse(refusal::rank);
        if (peer.incarnation != entry_of(peer.rank).incarnation) return by.refuse(refusal::incarnation);
        by.accept(0);
    }
    [[noreturn]] void throw_absent(rank_t who, std::string text) const {
        for (const target& each : targets_)
            if (each.rank == who && !each.trouble.empty())
                text += ": " + name_of(chosen_.rank) + " cannot connect: " + each.trouble;
        throw timeout(abort_notice{.kind = failure::timeout, .culprit = who, .reason = std::move(text)});
    }

    roster_entry own_entry() const {
        roster_entry made{
            .rank = chosen_.rank, .incarnation = made_.own.incarnation, .host = host_name(), .addresses = {}};
        for (const socket& each : made_.listeners)
            if (made.addresses.size() < roster_entry::most_addresses)
                made.addresses.push_back(roster_address_of(socket_address::local_of(each)));
        return made;
    }

    void receive_roster() {
        meeting_reader words(chosen_.ranks, chosen_.rank, 0);
        // Rank 0 waits until the same deadline, by its own start; then it says who is missing.
        const time_point last = until_ + chosen_.meeting_timeout;
        while (!words.is_whole()) {
            if (!read(words, line_to(0))) fail("the connection to rank 0 is lost while the ranks meet");
            if (words.is_whole()) break;
            if (wall_clock() >= last) fail("rank 0 has not answered" + within());
            pollfd one{.fd = line_to(0).on().get(), .events = POLLIN, .revents = 0};
            wait_for({&one, 1}, last);
        }
        if (words.kind() == meeting_word::kind::refusal) {
            const auto [kind, text] = words.refusal();
            fail_for_all(kind, text);
        }
        made_.roster = words.roster();
    }

    /// Reads what the socket has of a word; false where the connection is lost.
    static bool read(meeting_reader& words, const line& from) {
        for (byte_span room = words.room(); !room.empty(); room = words.room()) {
            const ssize_t got = from.read(room);
            if (got < 0 && errno == EAGAIN) return true;
            if (got <= 0) return false;
            words.arrived(static_cast<std::size_t>(got));
        }
        return true;
    }
    void send_all(rank_t peer, byte_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = line_to(peer).write(bytes);
            if (sent > 0) {
                bytes = bytes.subspan(static_cast<std::size_t>(sent));
                continue;
            }
            if (errno != EAGAIN || wall_clock() >= until_)
                fail("the connection to " + name_of(peer) + " is lost while the ranks meet: " + system_text());
            pollfd one{.fd = line_to(peer).on().get(), .events = POLLOUT, .revents = 0};
            wait_for({&one, 1}, until_);
        }
    }

    const options& chosen_;
    time_point until_;
    mesh made_;
    reception guests_{chosen_.ranks};
    std::vector<target> targets_;
    std::vector<pollfd> polled_;
    std::vector<newcomer> come_;
    std::string stranger_;  ///< what somebody lacked who could not prove that it belongs to the job
};

}}}  // namespace rill::RILL_ABI::tcp::detail
