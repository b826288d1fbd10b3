#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_framing.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// The connections of one rank to all others.
struct mesh {
    rank_t rank = 0;
    int ranks = 1;
    int neighbours = 1;              ///< ranks of this host, this one included
    std::vector<socket> to_peers{};  ///< by rank; that to itself is empty
};

/// What a rank says first on each connection, always as many bytes.
struct greeting {
    static constexpr std::size_t size_bytes = 96;
    static constexpr std::uint64_t known_magic = 0x31'70'63'74'6C'6C'69'72;  // "rilltcp1"

    std::uint64_t magic = known_magic;
    std::uint64_t rank = 0, ranks = 0, port = 0, is_for_meeting = 0;
    std::uint64_t job = 0, incarnation = 0, host = 0;
    std::uint64_t version = 0, eager_bytes = 0, chunk_bytes = 0, mailbox_bytes = 0;

    static constexpr std::uint64_t greeting::*fields[] = {
        &greeting::magic,          &greeting::rank,        &greeting::ranks,       &greeting::port,
        &greeting::is_for_meeting, &greeting::job,         &greeting::incarnation, &greeting::host,
        &greeting::version,        &greeting::eager_bytes, &greeting::chunk_bytes, &greeting::mailbox_bytes};

    void write(std::byte* at) const {
        for (const auto field : fields) put(at, this->*field, 8), at += 8;
    }
    static greeting read(const std::byte* at) {
        greeting made;
        for (const auto field : fields) made.*field = get(at, 8), at += 8;
        return made;
    }
};

/// Brings the ranks together: each connects to rank 0, which tells all where all listen; then each connects to the
/// ranks below it. The deadline is that of the whole meeting: no arrival prolongs it.
class meeting {
  public:
    explicit meeting(const options& chosen) : chosen_(chosen), until_(wall_clock() + chosen.meeting_timeout) {
        made_.rank = chosen.rank;
        made_.ranks = chosen.ranks;
        made_.to_peers.resize(static_cast<std::size_t>(chosen.ranks));
        std::uint64_t incarnation = 0;
        if (::getrandom(&incarnation, sizeof incarnation, 0) != sizeof incarnation)
            fail("cannot get random bytes: " + system_text());
        own_ = {.rank = static_cast<std::uint64_t>(chosen.rank),
                .ranks = static_cast<std::uint64_t>(chosen.ranks),
                .job = hash_of(chosen.job),
                .incarnation = incarnation,
                .host = host_of(),
                .version = mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR),
                .eager_bytes = chosen.eager_bytes,
                .chunk_bytes = chosen.chunk_bytes,
                .mailbox_bytes = chosen.mailbox_bytes};
    }

    mesh run() {
        if (chosen_.ranks == 1) return std::move(made_);
        if (chosen_.rank == 0)
            gather();
        else
            join();
        for (const socket& each : made_.to_peers)
            if (each) tune(each, chosen_.patience);
        return std::move(made_);
    }

  private:
    static constexpr duration most_silence = seconds(5);  ///< of a connection that has not greeted
    static constexpr std::size_t entry_bytes = 16 + sizeof(sockaddr_in6);

    struct guest {
        socket from;
        time_point since{};
        std::size_t filled = 0;
        std::byte bytes[greeting::size_bytes]{};
    };

    static std::uint64_t hash_of(std::string_view text) {
        std::uint64_t hash = 0;
        for (const char each : text) hash = mix64(hash, static_cast<unsigned char>(each));
        return hash;
    }
    static std::uint64_t host_of() {
        char name[256] = "";
        ::gethostname(name, sizeof name - 1);
        return hash_of(name);
    }

    std::string within() const { return text_of({" within ", chosen_.meeting_timeout.seconds(), " s"}); }
    [[noreturn]] void fail(const std::string& what) const { throw library_error(chosen_.rank, what); }

    std::vector<socket_address> addresses() const {
        std::vector<socket_address> all = resolve(chosen_.meeting, chosen_.rank);
        if (chosen_.security == security::open) return all;
        for (const socket_address& each : all)
            if (!each.is_loopback())
                fail("the meeting point " + chosen_.meeting +
                     " is not on the loopback interface, and security::open is not asked for");
        return all;
    }

    /// Accepts and reads greetings; calls `greeted(socket&&, greeting)` for each whole one of this protocol, until it
    /// returns true. False when the time has passed. Strangers are dropped.
    template <class Greeted, class Watched>
    bool receive_guests(const socket& listener, Greeted&& greeted, Watched&& watched) {
        const std::size_t most_guests = 64 + 2 * static_cast<std::size_t>(chosen_.ranks);
        std::vector<guest> guests;
        std::vector<pollfd> polled;
        while (wall_clock() < until_) {
            polled.assign(1, {.fd = guests.size() < most_guests ? listener.get() : -1, .events = POLLIN, .revents = 0});
            for (const guest& each : guests) polled.push_back({.fd = each.from.get(), .events = POLLIN, .revents = 0});
            wait_for(polled, until_);
            watched();
            if ((polled[0].revents & (POLLERR | POLLNVAL)) != 0) fail("the listening socket has failed");
            if (polled[0].revents != 0) {
                socket from(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
                if (from)
                    guests.push_back({.from = std::move(from), .since = wall_clock()});
                else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                    fail("cannot accept a connection: " + system_text());
            }
            for (std::size_t i = 0; i < guests.size();) {
                guest& each = guests[i];
                const ssize_t got =
                    ::recv(each.from.get(), each.bytes + each.filled, greeting::size_bytes - each.filled, 0);
                const bool waits = got < 0 && (errno == EAGAIN || errno == EINTR);
                if (got > 0) each.filled += static_cast<std::size_t>(got);
                const bool is_whole = each.filled == greeting::size_bytes;
                if (!is_whole && (got > 0 || (waits && wall_clock() < each.since + most_silence))) {
                    ++i;
                    continue;
                }
                guest done = std::move(each);
                guests.erase(guests.begin() + static_cast<std::ptrdiff_t>(i));
                if (!is_whole) continue;
                const greeting said = greeting::read(done.bytes);
                if (said.magic == greeting::known_magic && greeted(std::move(done.from), said)) return true;
            }
        }
        return false;
    }

    // Rank 0.

    void gather() {
        socket listener;
        for (const socket_address& each : addresses())
            if ((listener = listen_at(each, 2 * chosen_.ranks + 16))) break;
        if (!listener) fail("cannot listen at " + chosen_.meeting + ": " + system_text());
        std::vector<greeting> all(static_cast<std::size_t>(chosen_.ranks));
        all[0] = own_;
        int missing = chosen_.ranks - 1;
        const auto forget_lost = [&] {  // one that has come and gone may come again
            for (socket& each : made_.to_peers) {
                char one = 0;
                if (each && ::recv(each.get(), &one, 1, MSG_PEEK) == 0) each = socket(), ++missing;
            }
        };
        const bool complete = receive_guests(
            listener,
            [&](socket&& from, const greeting& said) {
                if (said.is_for_meeting == 0) return false;  // of another meeting, which was here before
                if (const std::string fault = fault_of_guest(said); !fault.empty()) {
                    tell_refusal(from, failure::mismatch, fault);
                    refuse_all(failure::mismatch, fault);
                }
                all[said.rank] = said;
                made_.to_peers[said.rank] = std::move(from);
                return --missing == 0;
            },
            forget_lost);
        if (!complete) {
            std::string who, more;
            for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
                if (!made_.to_peers[static_cast<std::size_t>(peer)]) {
                    more = who.empty() ? "" : "s";
                    who += (who.empty() ? "" : ", ") + std::to_string(peer);
                }
            refuse_all(failure::timeout, "rank" + more + " " + who + (more.empty() ? " has" : " have") +
                                             " not come to " + chosen_.meeting + within());
        }
        send_roster(all);
    }

    /// Why a guest cannot be one of the ranks; empty where it can.
    std::string fault_of_guest(const greeting& said) const {
        const std::string who = "rank " + std::to_string(said.rank);
        if (said.job != own_.job) return who + " belongs to another job";
        if (said.ranks != own_.ranks)
            return who + " expects " + std::to_string(said.ranks) + " ranks, rank 0 " + std::to_string(own_.ranks);
        if (said.version != own_.version) return who + " has another version of rill";
        if (said.eager_bytes != own_.eager_bytes) return who + " has another value of eager_bytes";
        if (said.chunk_bytes != own_.chunk_bytes) return who + " has another value of chunk_bytes";
        if (said.mailbox_bytes != own_.mailbox_bytes) return who + " has another value of mailbox_bytes";
        if (said.rank >= own_.ranks) return who + " is beyond the " + std::to_string(own_.ranks) + " ranks of the job";
        if (said.rank == 0 || made_.to_peers[said.rank]) return "two processes say that they are " + who;
        return "";
    }

    void tell_refusal(const socket& to, failure kind, const std::string& text) const {
        std::vector<std::byte> bytes(16 + text.size());
        put(bytes.data(), 1 + static_cast<std::uint64_t>(kind), 8);
        put(bytes.data() + 8, text.size(), 8);
        std::memcpy(bytes.data() + 16, text.data(), text.size());
        ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);  // an empty buffer of the system takes it whole
        ::shutdown(to.get(), SHUT_WR);
    }
    [[noreturn]] void refuse_all(failure kind, const std::string& text) {
        for (const socket& each : made_.to_peers)
            if (each) tell_refusal(each, kind, text);
        throw_error({.context = every_context, .kind = kind, .reason = text});
    }

    void send_roster(const std::vector<greeting>& all) {
        std::vector<std::byte> bytes(16 + entry_bytes * all.size());
        put(bytes.data() + 8, bytes.size() - 16, 8);
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::byte* const at = bytes.data() + 16 + i * entry_bytes;
            put(at, all[i].incarnation, 8);
            put(at + 8, all[i].host, 8);
            if (all[i].host == own_.host && i != 0) ++made_.neighbours;
            if (i == 0) continue;
            socket_address where = socket_address::peer_of(made_.to_peers[i]);
            where.set_port(static_cast<std::uint16_t>(all[i].port));
            std::memcpy(at + 16, &where.bytes, sizeof(sockaddr_in6));
        }
        for (rank_t peer = 1; peer < chosen_.ranks; ++peer)
            send_all(made_.to_peers[static_cast<std::size_t>(peer)], bytes.data(), bytes.size(), peer);
    }

    // The others.

    void join() {
        socket& first = made_.to_peers[0];
        const std::vector<socket_address> points = addresses();
        while (!first) {
            for (const socket_address& each : points)
                if ((first = connect_to(each, until_))) break;
            if (first) break;
            if (wall_clock() >= until_)
                throw timeout(
                    abort_notice{.kind = failure::timeout,
                                 .culprit = 0,
                                 .reason = text_of({"rank 0 has not come to ", chosen_.meeting, within(), ": rank ",
                                                    chosen_.rank, " cannot connect: ", system_text()})});
            wait_for({}, wall_clock() + milliseconds(20));
        }
        socket_address here = socket_address::local_of(first);
        here.set_port(0);
        const socket listener = listen_at(here, 2 * chosen_.ranks + 16);
        if (!listener) fail("cannot listen: " + system_text());
        own_.port = socket_address::local_of(listener).port();
        greet(first, true, 0);
        const std::vector<std::byte> roster = receive_roster(first);
        const auto entry = [&](std::size_t i) { return roster.data() + i * entry_bytes; };
        for (std::size_t i = 0; i < own_.ranks; ++i)
            if (i != own_.rank && get(entry(i) + 8, 8) == own_.host) ++made_.neighbours;
        for (std::size_t peer = 1; peer < own_.rank; ++peer) {
            socket_address where;
            std::memcpy(&where.bytes, entry(peer) + 16, sizeof(sockaddr_in6));
            where.size = where.is_v6() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
            socket& to = made_.to_peers[peer];
            if (!(to = connect_to(where, until_)))
                fail("cannot connect to rank " + std::to_string(peer) + ": " + system_text());
            greet(to, false, static_cast<rank_t>(peer));
        }
        std::uint64_t missing = own_.ranks - 1 - own_.rank;
        const bool complete = missing == 0 || receive_guests(
                                                  listener,
                                                  [&](socket&& from, const greeting& said) {
                                                      const bool is_expected =
                                                          said.is_for_meeting == 0 && said.rank > own_.rank &&
                                                          said.rank < own_.ranks && said.job == own_.job &&
                                                          !made_.to_peers[said.rank] &&
                                                          said.incarnation == get(entry(said.rank), 8);
                                                      if (!is_expected) return false;
                                                      made_.to_peers[said.rank] = std::move(from);
                                                      return --missing == 0;
                                                  },
                                                  [] {});
        if (complete) return;
        std::size_t peer = own_.rank + 1;
        while (made_.to_peers[peer]) ++peer;
        throw timeout(
            abort_notice{.kind = failure::timeout,
                         .culprit = static_cast<rank_t>(peer),
                         .reason = text_of({"rank ", peer, " has not connected to rank ", chosen_.rank, within()})});
    }

    void greet(const socket& to, bool is_for_meeting, rank_t peer) {
        std::byte bytes[greeting::size_bytes];
        own_.is_for_meeting = is_for_meeting ? 1 : 0;
        own_.write(bytes);
        send_all(to, bytes, sizeof bytes, peer);
    }

    std::vector<std::byte> receive_roster(const socket& from) {
        std::byte head[16];
        receive_all(from, head, sizeof head);
        const std::uint64_t kind = get(head, 8), size = get(head + 8, 8);
        const bool is_roster = kind == 0;
        if (kind > 1 + static_cast<std::uint64_t>(failure::deadlock) ||
            (is_roster ? size != entry_bytes * own_.ranks : size > 4096))
            throw protocol_error(abort_notice{.kind = failure::protocol,
                                              .culprit = 0,
                                              .reason = "what answers at " + chosen_.meeting + " is not rank 0"});
        std::vector<std::byte> content(static_cast<std::size_t>(size));
        receive_all(from, content.data(), content.size());
        if (is_roster) return content;
        throw_error({.context = every_context,
                     .kind = static_cast<failure>(kind - 1),
                     .reason = std::string(reinterpret_cast<const char*>(content.data()), content.size())});
    }

    void send_all(const socket& to, const std::byte* from, std::size_t size, rank_t peer) const {
        while (size != 0) {
            const ssize_t sent = ::send(to.get(), from, size, MSG_NOSIGNAL);
            if (sent > 0) {
                from += sent;
                size -= static_cast<std::size_t>(sent);
                continue;
            }
            if ((errno != EAGAIN && errno != EINTR) || wall_clock() >= until_)
                fail("the connection to rank " + std::to_string(peer) +
                     " is lost while the ranks meet: " + system_text());
            pollfd one{.fd = to.get(), .events = POLLOUT, .revents = 0};
            wait_for({&one, 1}, until_);
        }
    }
    void receive_all(const socket& from, std::byte* into, std::size_t size) const {
        // Rank 0 waits until the same deadline, by its own start; then it says who is missing.
        const time_point last = until_ + chosen_.meeting_timeout;
        while (size != 0) {
            const ssize_t got = ::recv(from.get(), into, size, 0);
            if (got > 0) {
                into += got;
                size -= static_cast<std::size_t>(got);
                continue;
            }
            if (got == 0 || (errno != EAGAIN && errno != EINTR))
                fail("the connection to rank 0 is lost while the ranks meet");
            if (wall_clock() >= last) fail("rank 0 has not answered" + within());
            pollfd one{.fd = from.get(), .events = POLLIN, .revents = 0};
            wait_for({&one, 1}, last);
        }
    }

    const options& chosen_;
    time_point until_;
    greeting own_;
    mesh made_;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
