#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_pending.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using state = handshake::state;
using refusal = handshake::refusal;

handshake::identity identity_of(rank_t rank) {
    return {.ranks = 4, .rank = rank, .incarnation = 100 + static_cast<std::uint64_t>(rank)};
}

/// A listening socket, with the connections that are made to it.
struct listening {
    tcp::detail::socket at = listen_at(resolve("127.0.0.1:0", no_rank).front(), 64);
    socket_address where = socket_address::local_of(at);

    tcp::detail::socket accept() const {
        pollfd one{.fd = at.get(), .events = POLLIN, .revents = 0};
        wait_for({&one, 1}, wall_clock() + seconds(20));
        return tcp::detail::socket(::accept4(at.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    }
};

/// Lets both ends proceed, and answers for them, until both are settled.
void settle(pending_connection& d, pending_connection& a, refusal decision = refusal::none) {
    const time_point until = wall_clock() + seconds(20);
    while (!(d.is_settled() && a.is_settled()) && wall_clock() < until) {
        CHECK(d.proceed());
        CHECK(a.proceed());
        if (d.now() == state::asks) d.prove(7);
        if (a.now() == state::asks) decision == refusal::none ? a.accept(8) : a.refuse(decision);
        pollfd both[] = {{.fd = d.on().get(), .events = d.wanted(), .revents = 0},
                         {.fd = a.on().get(), .events = a.wanted(), .revents = 0}};
        if (both[0].events != 0 || both[1].events != 0) wait_for(both, until);
    }
}

pending_connection dial(const listening& to, const dialer::expected& peer = {}) {
    return pending_connection::dialled(start_connecting(to.where), identity_of(1), peer, {}, wall_clock());
}
pending_connection answer(const listening& at, rank_t as = 2) {
    return pending_connection::accepted(at.accept(), identity_of(as), {}, wall_clock());
}

}  // namespace

TEST_CASE("an agreed connection is handed over with the bytes behind the handshake") {
    const listening at;
    pending_connection d = dial(at, {.rank = 2, .incarnation = 102}), a = answer(at);
    CHECK_THROWS_AS(d.take(), contract_violation);
    settle(d, a);
    REQUIRE(d.now() == state::agreed);
    REQUIRE(a.now() == state::agreed);
    CHECK(a.said().peer().rank == 1);
    CHECK(a.said().peer_taken() == 7);
    CHECK(d.said().peer_taken() == 8);
    const line from = d.take(), to = a.take();
    CHECK(::send(from.on().get(), "x", 1, MSG_NOSIGNAL) == 1);
    pollfd one{.fd = to.on().get(), .events = POLLIN, .revents = 0};
    wait_for({&one, 1}, wall_clock() + seconds(20));
    char got = 0;
    CHECK(::recv(to.on().get(), &got, 1, 0) == 1);
    CHECK(got == 'x');
}

TEST_CASE("bytes that follow the proof at once are left to who takes the socket") {
    const listening at;
    pending_connection d = dial(at), a = answer(at);
    while (d.now() != state::asks) {
        REQUIRE(d.proceed());
        REQUIRE(a.proceed());
    }
    d.prove(7);
    REQUIRE(d.proceed());
    CHECK(::send(d.on().get(), "frame", 5, MSG_NOSIGNAL) == 5);
    settle(d, a);
    const line to = a.take();
    char got[8];
    CHECK(::recv(to.on().get(), got, sizeof got, 0) == 5);
}

TEST_CASE("both ends hear of a refusal") {
    for (const refusal reason : {refusal::stale, refusal::crossed, refusal::taken}) {
        const listening at;
        pending_connection d = dial(at), a = answer(at);
        settle(d, a, reason);
        CHECK(d.said().why() == reason);
        CHECK(a.said().why() == reason);
    }
    const listening at;
    pending_connection d = dial(at), a = answer(at, 1);
    settle(d, a);
    CHECK(d.said().why() == refusal::rank);
    CHECK(a.said().why() == refusal::rank);
}

TEST_CASE("a connection that nobody accepts, or that ends in between, is lost") {
    const socket_address nobody = listening().where;
    pending_connection refused =
        pending_connection::dialled(start_connecting(nobody), identity_of(1), {}, {}, wall_clock());
    pollfd one{.fd = refused.on().get(), .events = refused.wanted(), .revents = 0};
    wait_for({&one, 1}, wall_clock() + seconds(20));
    CHECK_FALSE(refused.proceed());
    CHECK(errno == ECONNREFUSED);

    const listening at;
    pending_connection d = dial(at);
    at.accept();
    bool goes_on = true;
    while (goes_on) {
        goes_on = d.proceed();
        one = {.fd = d.on().get(), .events = d.wanted(), .revents = 0};
        if (goes_on) wait_for({&one, 1}, wall_clock() + seconds(20));
    }
    CHECK(d.now() == state::needs_more);
}

TEST_CASE("strangers have limited time, and push out each other") {
    const listening at;
    reception guests(4);
    CHECK(reception(100).most() == 200);
    REQUIRE(guests.most() == 64);
    std::vector<tcp::detail::socket> strangers;
    const auto admit = [&](const char* from, time_point since) {
        tcp::detail::socket made = make_socket(at.where);
        const socket_address own = resolve(std::string(from) + ":0", no_rank).front();
        REQUIRE(::bind(made.get(), own.raw(), own.size) == 0);
        ::connect(made.get(), at.where.raw(), at.where.size);
        strangers.push_back(std::move(made));
        guests.admit(pending_connection::accepted(at.accept(), identity_of(2), {}, since));
    };
    const time_point start = wall_clock();
    admit("127.0.0.3", start);
    const int rank = guests.waiting().front().on().get();
    for (std::size_t i = 0; i < 200; ++i) admit("127.0.0.2", start + seconds(1));
    CHECK(guests.waiting().size() == 64);
    CHECK(guests.waiting().front().on().get() == rank);

    guests.drop_late(start + milliseconds(4999));
    CHECK(guests.waiting().size() == 64);
    guests.drop_late(start + seconds(5));
    CHECK(guests.waiting().size() == 63);
    guests.drop_late(start + seconds(6));
    CHECK(guests.waiting().empty());
}
