// Seats of a run in one process: free until somebody starts a rank there.
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

using rill::deadline;
using rill::peer_change;
using rill::peer_event;

namespace {
constexpr rill::channel events{.context = 9, .tag = 0}, numbers{.context = 5, .tag = 1};
}

TEST_CASE("a seat is free until a rank is started there, and is taken once") {
    std::atomic<int> ran{0}, right{0};
    rill::in_process::run(
        2,
        [&](auto& net) {
            ++ran;
            if (net.rank() == 3) {
                if (net.post(0, numbers, rill::buffer(7))) ++right;
                return;
            }
            if (net.rank() == 1) return;
            CHECK(net.size() == 4);
            CHECK(net.incarnation(3) == 0);
            net.monitor(events);
            CHECK(net.post(3, numbers, rill::buffer(1)));  // lost
            CHECK_FALSE(net.start(1));
            CHECK(net.start(3));
            CHECK_FALSE(net.start(3));
            const std::uint64_t life = net.incarnation(3);
            CHECK(life != 0);
            CHECK(life != net.incarnation(1));
            const auto next = [&] { return rill::read_peer_event(*net.receive(3, events, deadline::never)); };
            CHECK(next() == peer_event{peer_change::arrived, life});
            CHECK(next() == peer_event{peer_change::ended, life});
            CHECK(net.receive(3, numbers, deadline::immediate)->pieces().size_bytes() == 7);
            const rill::channel beside{.context = events.context, .tag = 1};
            CHECK_THROWS_WITH_AS(net.receive(3, beside, deadline::never),
                                 "rill: rank 0 waits for a message from ranks 3, which will not come: they have ended",
                                 rill::peer_failure);
        },
        {.seats = 4});
    CHECK(ran == 3);
    CHECK(right == 1);
}

TEST_CASE("what a started rank throws ends the run") {
    CHECK_THROWS_AS(rill::in_process::run(1,
                                          [](auto& net) {
                                              if (net.rank() == 1) throw std::out_of_range("seat 1");
                                              net.start(1);
                                              net.receive(1, numbers, deadline::never);
                                          },
                                          {.seats = 2}),
                    std::out_of_range);
}

TEST_CASE("a rank that has heard of an exception goes on once it monitors") {
    std::atomic<int> gone_on{0};
    const auto body = [&](auto& net) {
        if (net.rank() == 1) throw std::out_of_range("rank 1");
        CHECK_THROWS_AS(net.receive(1, numbers, deadline::never), rill::peer_failure);
        CHECK(net.aborted(rill::every_context));
        net.monitor(events);
        CHECK_FALSE(net.aborted(rill::every_context));
        const rill::rank_t other = 2 - net.rank();
        CHECK(net.post(other, numbers, rill::buffer(1)));
        CHECK(net.receive(other, numbers, deadline::never)->pieces().size_bytes() == 1);
        ++gone_on;
    };
    CHECK_THROWS_AS(rill::in_process::run(3, body), std::out_of_range);
    CHECK(gone_on == 2);
}
