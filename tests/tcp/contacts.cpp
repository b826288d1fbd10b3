#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_turns.hpp>
#include <rill/transport/detail/tcp_contacts.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using refusal = handshake::refusal;

/// A rank that only makes connections.
struct rank_end final : contacts::owner {
    explicit rank_end(rank_t rank, contacts::pace pace = {})
        : in(rank),
          makes(in, {.ranks = 4, .rank = rank, .incarnation = 100 + static_cast<std::uint64_t>(rank)}, {}, pace) {
        std::vector<tcp::detail::socket> listeners;
        listeners.push_back(listen_at(resolve("127.0.0.1:0", no_rank).front(), 64));
        where = socket_address::local_of(listeners.front());
        makes.listen(std::move(listeners));
    }
    std::uint64_t begin(rank_t) override { return ++begun; }
    void dialled(rank_t, pending_connection&& one) override {
        told = one.said().peer_taken();
        made = one.take();
    }
    void refused(rank_t, const handshake& by) override { why = by.why(); }
    void lost(rank_t, int number) override { error = number; }
    void unreachable(rank_t, int count) override { rounds = count; }
    void decide(pending_connection& guest) override {
        decision == refusal::none ? guest.accept(8) : guest.refuse(decision);
    }
    void came(pending_connection&& guest, bool is_told) override {
        CHECK(is_told);
        told = guest.said().peer_taken();
        made = guest.take();
    }
    void turned_away(const pending_connection& guest) override { why = guest.said().why(); }

    void go_on() {
        in.look([&](std::uint64_t name, std::uint32_t) { makes.serve(name, *this); });
        makes.keep_time(wall_clock(), *this);
    }

    loop in;
    contacts makes;
    socket_address where;
    line made{};
    std::uint64_t begun = 0, told = 0;
    refusal decision = refusal::none, why = refusal::none;
    int error = 0, rounds = 0;
};

template <class Until>
void go_on(rank_end& one, rank_end& other, Until&& until) {
    const time_point last = wall_clock() + seconds(30);
    while (!until() && wall_clock() < last) {
        one.go_on();
        other.go_on();
    }
    CHECK(until());
}
socket_address nobody() {
    const auto closed = listen_at(resolve("127.0.0.1:0", no_rank).front(), 1);
    return socket_address::local_of(closed);
}

/// A guest as rank 2 accepts it; nothing of it has been read.
pending_connection guest_at(const tcp::detail::socket& listener) {
    return pending_connection::accepted(
        tcp::detail::socket(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)),
        {.ranks = 4, .rank = 2, .incarnation = 102}, {}, wall_clock());
}
/// Whether the guest, which `dials` has dialled, comes to prove itself.
bool proves(pending_connection& guest, rank_end& dials) {
    const time_point last = wall_clock() + seconds(30);
    while (guest.proceed() && guest.now() != handshake::state::asks && wall_clock() < last) dials.go_on();
    return guest.now() == handshake::state::asks;
}
/// Some sockets that listen, and where.
struct listening {
    explicit listening(int count) {
        for (int i = 0; i < count; ++i) {
            sockets.push_back(listen_at(resolve("127.0.0.1:0", no_rank).front(), 64));
            addresses.push_back(socket_address::local_of(sockets.back()));
        }
    }
    std::vector<tcp::detail::socket> sockets;
    std::vector<socket_address> addresses;
};

}  // namespace

TEST_CASE("of several addresses of a peer, one that answers suffices") {
    rank_end dials(1), waits(2);
    const socket_address silent = resolve("192.0.2.1:9", no_rank).front();
    dials.makes.dial(2, {nobody(), silent, waits.where}, 102, wall_clock(), dials);
    go_on(dials, waits, [&] { return dials.made && waits.made; });
    CHECK(dials.told == 8);
    CHECK(waits.told == 1);
    CHECK_FALSE(dials.makes.dials(2));
    CHECK(dials.rounds == 0);
}

TEST_CASE("a peer whose addresses all refuse is told with the number of rounds, until it is given up") {
    rank_end dials(1, {.after_answer = milliseconds(1)}), other(2);
    dials.makes.dial(3, {nobody()}, 0, wall_clock(), dials);
    go_on(dials, other, [&] { return dials.rounds == 3; });
    CHECK(dials.error == ECONNREFUSED);
    dials.makes.stop(3);
    CHECK(dials.makes.due().is_never());
    dials.makes.dial(2, {nobody(), other.where}, 102, wall_clock(), dials);
    go_on(dials, other, [&] { return bool(dials.made); });
    CHECK(dials.rounds == 3);
}

TEST_CASE("100 ms lie between two rounds in which a peer refuses") {
    rank_end dials(1), other(2);
    const time_point begin = wall_clock();
    dials.makes.dial(3, {nobody()}, 0, begin, dials);
    time_point refused = begin;  // at the earliest
    go_on(dials, other, [&] {
        if (dials.rounds == 0) refused = wall_clock();
        return dials.rounds == 1;
    });
    const time_point again = dials.makes.due().at;
    CHECK(again - refused >= milliseconds(100));
    dials.makes.keep_time(time_point{again.ns - 1}, dials);
    CHECK(dials.makes.due().at == again);
    dials.makes.keep_time(again, dials);
    CHECK(dials.makes.due().at > again);
    go_on(dials, other, [&] { return dials.rounds == 2; });
}

TEST_CASE("a dial that is not answered is followed by others, and the first that is answered ends them") {
    const auto deaf = listen_at(resolve("127.0.0.1:0", no_rank).front(), 64);
    rank_end dials(1, {.again = milliseconds(5), .slow = milliseconds(5)}), waits(2);
    dials.makes.dial(2, {socket_address::local_of(deaf)}, 0, wall_clock(), dials);
    std::vector<tcp::detail::socket> came;
    go_on(dials, waits, [&] {
        if (tcp::detail::socket one(::accept4(deaf.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)); one)
            came.push_back(std::move(one));
        return came.size() == 20;
    });
    CHECK(dials.makes.dials(2));
    int open = 0;
    char bytes[128];
    for (const auto& each : came) {
        ssize_t got = 1;
        while (got > 0) got = ::recv(each.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        open += got < 0 && errno == EAGAIN ? 1 : 0;
    }
    CHECK(open <= 9);  // older ones are given up
}

TEST_CASE("a guest that is refused may come again, and its dial goes on") {
    rank_end dials(1, {.after_answer = milliseconds(1)}), waits(2);
    waits.decision = refusal::crossed;
    dials.makes.dial(2, {waits.where}, 102, wall_clock(), dials);
    go_on(dials, waits, [&] { return dials.why == refusal::crossed; });
    CHECK(waits.why == refusal::crossed);
    CHECK(dials.makes.dials(2));
    waits.decision = refusal::none;
    go_on(dials, waits, [&] { return dials.made && waits.made; });
    CHECK(dials.begun >= 2);
}

TEST_CASE("of two dials to a peer, the earlier one proves nothing once the later one has") {
    rank_end dials(1, {.again = seconds(100)});
    const listening at(2);
    dials.makes.dial(2, at.addresses, 102, wall_clock(), dials);
    pending_connection later = guest_at(at.sockets[1]), earlier = guest_at(at.sockets[0]);
    CHECK(proves(later, dials));
    CHECK_FALSE(proves(earlier, dials));
    CHECK(dials.begun == 1);
    later.accept(8);
    CHECK(later.proceed());
    for (const time_point last = wall_clock() + seconds(30); !dials.made && wall_clock() < last;) dials.go_on();
    CHECK(dials.told == 8);
}

TEST_CASE("a dial of an earlier round that ends does not count as another refused round") {
    rank_end dials(1, {.again = seconds(100), .after_answer = seconds(100)}), other(2);
    listening at(3);
    dials.makes.dial(2, at.addresses, 102, wall_clock(), dials);
    std::vector<pending_connection> guests;
    for (const auto& each : at.sockets) guests.push_back(guest_at(each));
    at.sockets.clear();
    dials.makes.keep_time(wall_clock() + seconds(200), dials);  // begins the next round
    go_on(dials, other, [&] { return dials.rounds == 1; });
    CHECK(proves(guests[1], dials));
    CHECK_FALSE(proves(guests[0], dials));  // given up for the later one
    CHECK(dials.rounds == 1);
    dials.error = -1;
    guests.pop_back();
    go_on(dials, other, [&] { return dials.error != -1; });
    CHECK(dials.rounds == 1);
}
