#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_key.hpp>
#include <rill/transport/detail/tcp_pending.hpp>
#include <rill/transport/detail/tcp_tls.hpp>

#include <doctest/doctest.h>

#include <malloc.h>
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
        pollfd event{.fd = at.get(), .events = POLLIN, .revents = 0};
        wait_for({&event, 1}, wall_clock() + seconds(20));
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

pending_connection dial(const listening& to, const dialer::expected& peer = {}, const credentials& by = {}) {
    return pending_connection::dialled(start_connecting(to.where), identity_of(1), peer, by, wall_clock());
}
pending_connection answer(const listening& at, rank_t as = 2, const credentials& by = {}) {
    return pending_connection::accepted(at.accept(), identity_of(as), by, wall_clock());
}

/// A key, and TLS by it.
struct secured {
    tcp::key secret;
    tls_context context{secret.tls_secret()};
    credentials proved{secret.prover()}, encrypted{secret.prover(), &context};
};
const secured one{tcp::key::from_text("0123456789abcdefghijklmnop")},
    other{tcp::key::from_text("0123456789abcdefghijklmnoP")};

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
    pollfd event{.fd = to.on().get(), .events = POLLIN, .revents = 0};
    wait_for({&event, 1}, wall_clock() + seconds(20));
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
    pollfd event{.fd = refused.on().get(), .events = refused.wanted(), .revents = 0};
    wait_for({&event, 1}, wall_clock() + seconds(20));
    CHECK_FALSE(refused.proceed());
    CHECK(errno == ECONNREFUSED);

    const listening at;
    pending_connection d = dial(at);
    at.accept();
    bool goes_on = true;
    while (goes_on) {
        goes_on = d.proceed();
        event = {.fd = d.on().get(), .events = d.wanted(), .revents = 0};
        if (goes_on) wait_for({&event, 1}, wall_clock() + seconds(20));
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

    std::size_t of_older_half = 0;  // who is pushed out is drawn among all of the crowd
    for (int i = 0; i < 200; ++i) {
        std::vector<int> before;
        for (const auto& each : guests.waiting()) before.push_back(each.on().get());
        admit("127.0.0.2", start + seconds(1));
        std::size_t pushed_out = 0;
        for (const auto& each : guests.waiting())
            if (pushed_out < before.size() && each.on().get() == before[pushed_out]) ++pushed_out;
        of_older_half += pushed_out < 32 ? 1 : 0;
    }
    CHECK(of_older_half > 40);
    CHECK(of_older_half < 160);
    CHECK(guests.waiting().front().on().get() == rank);

    guests.drop_late(start + milliseconds(4999));
    CHECK(guests.waiting().size() == 64);
    guests.drop_late(start + seconds(5));
    CHECK(guests.waiting().size() == 63);
    guests.drop_late(start + seconds(6));
    CHECK(guests.waiting().empty());
}

TEST_CASE("an encrypted connection is handed over, with the bytes that have come behind the handshake") {
    const listening at;
    pending_connection d = dial(at, {.rank = 2, .incarnation = 102}, one.encrypted), a = answer(at, 2, one.encrypted);
    settle(d, a);
    REQUIRE(d.now() == state::agreed);
    REQUIRE(a.now() == state::agreed);
    CHECK(a.said().peer().rank == 1);
    CHECK(a.said().peer_taken() == 7);
    CHECK(d.said().peer_taken() == 8);
    const line from = d.take(), to = a.take();
    const std::vector<std::byte> said(1 << 20, std::byte{5});
    std::vector<std::byte> got;
    for (std::size_t sent = 0; got.size() < said.size();) {
        if (const auto count = from.write(byte_view(said).subspan(sent)); count > 0)
            sent += static_cast<std::size_t>(count);
        std::byte some[5000];
        if (const auto count = to.read(some); count > 0) got.insert(got.end(), some, some + count);
        REQUIRE((errno == EAGAIN || got.size() <= said.size()));
    }
    CHECK(got == said);
    CHECK_FALSE(from.owes());
    CHECK_FALSE(to.holds());
}

TEST_CASE("encrypted bytes that follow the proof at once are left to who takes the connection") {
    const listening at;
    pending_connection d = dial(at, {}, one.encrypted), a = answer(at, 2, one.encrypted);
    const time_point until = wall_clock() + seconds(20);
    while (a.now() != state::asks && wall_clock() < until) {
        REQUIRE(d.proceed());
        REQUIRE(a.proceed());
        if (d.now() == state::asks) d.prove(7);
    }
    a.accept(8);
    while (!a.is_settled() && wall_clock() < until) REQUIRE(a.proceed());
    const line from = a.take();
    const std::byte frame[] = {std::byte{1}, std::byte{2}, std::byte{3}};
    CHECK(from.write(frame) == 3);
    pollfd one_more{.fd = d.on().get(), .events = POLLIN, .revents = 0};
    while (!d.is_settled() && wall_clock() < until) {
        wait_for({&one_more, 1}, until);
        REQUIRE(d.proceed());
    }
    const line to = d.take();
    std::byte got[8];
    ssize_t count = -1;
    while ((count = to.read(got)) < 0 && wall_clock() < until) wait_for({&one_more, 1}, until);
    CHECK(count == 3);
    CHECK(got[2] == std::byte{3});
}

TEST_CASE("ends with other keys, or of which one does not encrypt, agree to nothing and are told why") {
    const auto reasons = [](const credentials& dials, const credentials& answers) {
        const listening at;
        pending_connection d = dial(at, {}, dials), a = answer(at, 2, answers);
        const time_point until = wall_clock() + seconds(20);
        while (!(d.is_settled() && a.is_settled()) && wall_clock() < until) {
            d.proceed();
            a.proceed();
            REQUIRE(d.now() != state::asks);
            REQUIRE(a.now() != state::asks);
        }
        return std::pair(d.said().why(), a.said().why());
    };
    CHECK(reasons(one.encrypted, other.encrypted) == std::pair(refusal::key, refusal::key));
    CHECK(reasons(one.encrypted, one.proved) == std::pair(refusal::security, refusal::security));
    CHECK(reasons(one.proved, one.encrypted) == std::pair(refusal::security, refusal::security));
    CHECK(reasons(one.encrypted, {}) == std::pair(refusal::security, refusal::security));
    CHECK(reasons({}, one.encrypted) == std::pair(refusal::security, refusal::security));
}

TEST_CASE("a thousand strangers that repeat what a rank has said take little memory, encrypted or not") {
    for (const credentials& by : {one.proved, one.encrypted}) {
        const listening at;
        // What a rank says first, recorded.
        std::byte recorded[2048];
        pending_connection rank = dial(at, {}, by);
        const tcp::detail::socket heard = at.accept();
        const time_point until = wall_clock() + seconds(20);
        ssize_t count = -1;
        while (count < 0 && wall_clock() < until) {
            REQUIRE(rank.proceed());
            count = ::recv(heard.get(), recorded, sizeof recorded, MSG_DONTWAIT);
        }
        REQUIRE(count > 50);

        reception guests(4);
        const std::size_t before = ::mallinfo2().uordblks;
        for (int i = 0; i < 1000; ++i) {
            tcp::detail::socket stranger = start_connecting(at.where);
            pending_connection guest = answer(at, 2, by);
            CHECK(::send(stranger.get(), recorded, static_cast<std::size_t>(count), MSG_NOSIGNAL) == count);
            pollfd event{.fd = guest.on().get(), .events = POLLIN, .revents = 0};
            wait_for({&event, 1}, until);
            REQUIRE(guest.proceed());
            guests.admit(std::move(guest));
        }
        CHECK(guests.waiting().size() == 64);
        const std::size_t after = ::mallinfo2().uordblks;
        CHECK(after - before <= std::size_t{4} << 20);
    }
}
