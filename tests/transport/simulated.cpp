#include <rill/testing/transport_laws.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim = rill::simulated;
using rill::deadline;

namespace {

constexpr rill::channel on{.context = 0, .tag = 7};

bool says(const std::exception& thrown, const char* text) {
    return std::string(thrown.what()).find(text) != std::string::npos;
}

/// Sends messages of different sizes from all ranks to all, received from any rank.
void chatter(sim::endpoint& net) {
    std::vector<rill::rank_t> others;
    for (rill::rank_t peer = 0; peer < net.size(); ++peer)
        if (peer != net.rank()) others.push_back(peer);
    for (std::size_t round = 1; round <= 5; ++round) {
        for (const rill::rank_t peer : others) net.post(peer, on, rill::buffer(100 * round));
        for (std::size_t i = 0; i < others.size(); ++i) net.receive(others, on, deadline::never);
    }
}

}  // namespace

TEST_CASE("simulated keeps the laws of a transport") {
    constexpr std::size_t mailbox_bytes = 4096;
    int laws = 0;
    rill::testing::for_each_law([](int ranks, auto&& body) { sim::run(ranks, {.mailbox_bytes = mailbox_bytes}, body); },
                                {.mailbox_bytes = mailbox_bytes, .same_first_notice = false},
                                [&](const char* name, const rill::testing::law_outcome& outcome) {
                                    ++laws;
                                    CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
                                });
    CHECK(laws > 40);
}

TEST_CASE("simulated keeps the laws when every message has a random delay") {
    rill::testing::for_each_law(
        [](int ranks, auto&& body) {
            sim::run(ranks, {.bandwidth = 0, .jitter = rill::milliseconds(1), .seed = 3}, body);
        },
        {.same_first_notice = false, .large_bytes = 100'000, .largest_bytes = 1'000'000},
        [&](const char* name, const rill::testing::law_outcome& outcome) {
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
}

TEST_CASE("a message of n bytes arrives after the latency and n times the time of a byte") {
    const sim::network links{.latency = rill::nanoseconds(1000), .bandwidth = 500'000'000};
    std::int64_t first = 0, second = 0, other = 0;
    const sim::report all = sim::run(3, links, [&](sim::endpoint& net) {
        const std::vector<std::byte> data(100);
        if (net.rank() == 0) {
            auto a = net.post(1, on, rill::byte_view(data));
            auto b = net.post(1, on, rill::byte_view(data).first(10));
            auto c = net.post(2, on, rill::byte_view(data));
            for (auto* sent : {&a, &b, &c}) sent->wait(deadline::never);
        } else if (net.rank() == 1) {
            CHECK(net.receive(0, on, deadline::never)->pieces().size_bytes() == 100);
            first = net.now().ns;
            CHECK(net.receive(0, on, deadline::never)->pieces().size_bytes() == 10);
            second = net.now().ns;
        } else {
            net.receive(0, on, deadline::never);
            other = net.now().ns;
        }
    });
    CHECK(first == 1000 + 200);
    CHECK(second == 1000 + 200 + 20);
    CHECK(other == first);
    CHECK(all.elapsed.ns == second);
    CHECK(all.messages == 3);
    CHECK(all.bytes == 210);
    CHECK(all.events == 3);
}

TEST_CASE("a link is free again after the transfer, not after the latency") {
    const sim::network links{.latency = rill::nanoseconds(1000), .bandwidth = 1'000'000'000};
    sim::run(2, links, [](sim::endpoint& net) {
        if (net.rank() == 0) {
            net.post(1, on, rill::buffer(50));
            net.sleep_until({60});
            net.post(1, on, rill::buffer(7));
        } else {
            net.receive(0, on, deadline::never);
            CHECK(net.now().ns == 1050);
            net.receive(0, on, deadline::never);
            CHECK(net.now().ns == 1067);
        }
    });
}

TEST_CASE("transfer times are rounded up and do not overflow") {
    CHECK(rill::transfer_time(1, 3).ns == 333'333'334);
    CHECK(rill::transfer_time(1'000'000, 0).ns == 0);
    CHECK(rill::transfer_time(std::uint64_t{1} << 50, 1'000'000'000'000).ns == 1'125'899'906'843);
}

TEST_CASE("messages to oneself and waits that are already satisfied take no time") {
    const sim::report all = sim::run(2, {}, [](sim::endpoint& net) {
        net.post(net.rank(), on, rill::buffer(1'000'000));
        CHECK(net.receive(net.rank(), on, deadline::immediate).has_value());
        net.sleep_until(net.now());
    });
    CHECK(all.elapsed.ns == 0);
    CHECK(all.events == 0);
}

TEST_CASE("deadlines and sleeps end exactly on time; an unsuccessful check costs one poll") {
    sim::run(1, {.poll = rill::nanoseconds(30)}, [](sim::endpoint& net) {
        CHECK(!net.receive(0, on, net.now() + rill::nanoseconds(500)));
        CHECK(net.now().ns == 500);
        net.sleep_until({1234});
        CHECK(net.now().ns == 1234);
        CHECK(!net.receive(0, on, deadline::immediate));
        CHECK(net.now().ns == 1264);
    });
}

TEST_CASE("the same network runs the same way, another seed runs another way") {
    sim::network links{.jitter = rill::microseconds(50), .seed = 1};
    const sim::report once = sim::run(7, links, chatter);
    CHECK(sim::run(7, links, chatter) == once);
    links.seed = 2;
    const sim::report other = sim::run(7, links, chatter);
    CHECK(other.trace_hash != once.trace_hash);
    CHECK(other.bytes == once.bytes);
    links.jitter = {};
    CHECK(sim::run(7, links, chatter).trace_hash != other.trace_hash);
}

TEST_CASE("jitter stays within its bounds and depends on link and message number") {
    const sim::network links{.jitter = rill::nanoseconds(3), .seed = 5};
    bool seen[4]{};
    for (std::uint64_t i = 0; i < 100; ++i) {
        const std::int64_t extra = links.extra(0, 1, i).ns;
        REQUIRE((0 <= extra && extra <= 3));
        seen[extra] = true;
        CHECK(links.extra(0, 1, i) == links.extra(0, 1, i));
    }
    for (const bool each : seen) CHECK(each);
}

TEST_CASE("a thousand ranks exchange in one thread") {
    const sim::report all = sim::run(1000, {.latency = rill::nanoseconds(10), .bandwidth = 0}, [](sim::endpoint& net) {
        for (std::uint32_t tag = 0; tag < 3; ++tag) {
            net.post((net.rank() + 1) % net.size(), {0, tag}, rill::buffer(8));
            net.receive((net.rank() + net.size() - 1) % net.size(), {0, tag}, deadline::never);
        }
    });
    CHECK(all.elapsed.ns == 30);
    CHECK(all.messages == 3000);
}

TEST_CASE("a deadlock names who waits for whom") {
    int ended = 0;
    const auto body = [&](sim::endpoint& net) {
        try {
            if (net.rank() == 0) net.receive(1, on, deadline::never);
            if (net.rank() == 1) net.inquire(2, 5, 3, deadline::never);
            if (net.rank() == 2) {
                sim::event never(net);
                never.wait(deadline::never);
            }
        } catch (const rill::deadlock&) {
            ++ended;
            throw;
        }
    };
    try {
        sim::run(3, {}, body);
        FAIL("no deadlock");
    } catch (const rill::deadlock& thrown) {
        CHECK(std::string(thrown.what()) ==
              "rill: deadlock at 10000 ns: rank 0 waits for a message from rank 1 (context 0, tag 7); rank 1 waits for "
              "rank 2 to enter call 3 (context 5); rank 2 waits for an event");
        CHECK(thrown.culprit() == rill::no_rank);
    }
    CHECK(ended == 3);
}

TEST_CASE("a deadlock whose exceptions all bodies catch is still thrown by run") {
    const auto body = [](sim::endpoint& net) {
        const rill::buffer lent(10);
        auto sent = net.post(1 - net.rank(), on, rill::byte_view(lent));
        CHECK_THROWS_AS(sent.wait(deadline::never), rill::deadlock);
        const rill::rank_t both[] = {0, 1};
        CHECK_THROWS_AS(net.receive(both, on, deadline::never), rill::deadlock);
    };
    CHECK_THROWS_WITH_AS(sim::run(2, {}, body),
                         "rill: deadlock at 10008 ns: rank 0 waits for rank 1 to receive and release its message "
                         "(context 0, tag 7); rank 1 waits for rank 0 to receive and release its message (context 0, "
                         "tag 7)",
                         rill::deadlock);
}

TEST_CASE("a rank that waits for itself to release a message is released") {
    CHECK_THROWS_AS(sim::run(1, {},
                             [](sim::endpoint& net) {
                                 const rill::buffer lent(10);
                                 auto sent = net.post(0, on, rill::byte_view(lent));
                                 const auto held = net.receive(0, on, deadline::never);
                                 sent.settle();
                             }),
                    rill::deadlock);
}

TEST_CASE("run rethrows the culprit's own exception; the others get its text") {
    struct odd {
        int value;
    };
    int told = 0;
    const auto body = [&](sim::endpoint& net) {
        if (net.rank() == 2) {
            net.sleep_until({500});
            throw std::domain_error("three is a crowd");
        }
        try {
            net.receive(2, on, deadline::never);
        } catch (const rill::peer_failure& thrown) {
            CHECK(thrown.culprit() == 2);
            CHECK(says(thrown, "rank 2 failed: three is a crowd"));
            CHECK(net.now().ns == 10500);
            ++told;
            if (net.rank() == 0) throw odd{4};
        }
    };
    CHECK_THROWS_AS(sim::run(4, {}, body), std::domain_error);
    CHECK(told == 3);
    CHECK_THROWS_AS(
        sim::run(2, {}, [](sim::endpoint& net) { net.rank() == 1 ? throw odd{1} : net.sleep_until({99'999}); }), odd);
}

TEST_CASE("run rethrows the exception of the rank that the notice names, not the first one") {
    const auto body = [](sim::endpoint& net) {
        if (net.rank() == 1) {
            net.abort({.context = 3, .culprit = 1, .reason = "rank 1 is tired"});
            CHECK_THROWS_AS(net.sleep_until({100'000}), rill::peer_failure);  // the other ranks have ended the run
            throw std::range_error("the cause");
        }
        net.receive(1, {3, 0}, deadline::never);
    };
    CHECK_THROWS_AS(sim::run(3, {}, body), std::range_error);
}

TEST_CASE("a fiber may be suspended while it handles an exception or unwinds") {
    struct on_unwinding {
        sim::endpoint& net;
        rill::time_point until;
        ~on_unwinding() {
            CHECK(std::uncaught_exceptions() == 1);
            net.sleep_until(until);
            CHECK(std::uncaught_exceptions() == 1);
        }
    };
    sim::run(3, {}, [](sim::endpoint& net) {
        const std::string own = std::to_string(net.rank());
        const auto sleep = [&](int turn) { net.sleep_until({100 * turn + 10 * ((net.rank() + turn) % 3)}); };
        CHECK(std::uncaught_exceptions() == 0);
        try {
            throw std::runtime_error("outer " + own);
        } catch (const std::exception&) {
            sleep(1);
            try {
                const on_unwinding later{net, {200 + 10 * ((net.rank() + 2) % 3)}};
                throw std::runtime_error("inner " + own);
            } catch (const std::exception& inner) {
                sleep(3);
                CHECK(inner.what() == "inner " + own);
                CHECK_THROWS_WITH(throw, ("inner " + own).c_str());
            }
            sleep(4);
            CHECK_THROWS_WITH(throw, ("outer " + own).c_str());
        }
        CHECK(std::current_exception() == nullptr);
        CHECK(std::uncaught_exceptions() == 0);
    });
    CHECK(std::current_exception() == nullptr);
}

TEST_CASE("simulations nest") {
    std::int64_t inner_end = 0;
    const sim::report outer = sim::run(2, {}, [&](sim::endpoint& net) {
        net.sleep_until({50});
        if (net.rank() == 0)
            inner_end = sim::run(2, {}, [](sim::endpoint& inner) { inner.sleep_until({7000}); }).elapsed.ns;
        net.sleep_until({60});
    });
    CHECK(inner_end == 7000);
    CHECK(outer.elapsed.ns == 60);
}

TEST_CASE("activities of a rank take turns in virtual time, and their fibers are reused") {
    std::string order;
    sim::run(1, {}, [&](sim::endpoint& net) {
        for (int round = 0; round < 100; ++round) {
            const rill::time_point start = net.now();
            auto slow = net.spawn([&, own = std::string("slow")] {
                net.sleep_until(start + rill::nanoseconds(20));
                order += own[0];
            });
            auto quick = net.spawn([&] {
                net.sleep_until(start + rill::nanoseconds(10));
                order += 'q';
            });
            slow.join();
            quick.join();
            CHECK(net.now() == start + rill::nanoseconds(20));
        }
    });
    std::string wanted;
    for (int round = 0; round < 100; ++round) wanted += "qs";
    CHECK(order == wanted);
}

TEST_CASE("ranks that wait for room get it in the order in which they began to wait") {
    std::string order;
    sim::run(4, {.latency = {}, .bandwidth = 0, .mailbox_bytes = 100}, [&](sim::endpoint& net) {
        if (net.rank() > 0) {
            net.sleep_until({10 * net.rank()});
            CHECK(net.post(0, on, rill::buffer(60), deadline::never));
            order += std::to_string(net.rank());
            return;
        }
        net.sleep_until({100});
        CHECK(order == "1");
        for (rill::rank_t peer = 1; peer < 4; ++peer) {
            CHECK(net.receive(peer, on, deadline::never));
            net.sleep_until(net.now() + rill::nanoseconds(1));
        }
        CHECK(order == "123");
    });
}

TEST_CASE("a rank that stops waiting for room lets those behind it go on") {
    sim::run(3, {.latency = {}, .bandwidth = 0, .mailbox_bytes = 100}, [&](sim::endpoint& net) {
        if (net.rank() == 0) return net.sleep_until({100});
        if (net.rank() == 1) {
            CHECK(net.post(0, on, rill::buffer(60)));
            CHECK(!net.post(0, on, rill::buffer(60), rill::time_point{50}));
        } else {
            net.sleep_until({10});
            CHECK(net.post(0, on, rill::buffer(40), rill::time_point{90}));
            CHECK(net.now().ns == 50);
        }
    });
}

TEST_CASE("closing a context releases ranks that wait for room on it") {
    sim::run(2, {.latency = {}, .bandwidth = 0, .mailbox_bytes = 100}, [&](sim::endpoint& net) {
        constexpr rill::channel closing{.context = 4, .tag = 0};
        if (net.rank() == 0) {
            net.sleep_until({100});
            net.close(closing.context);
            CHECK(net.receive(1, on, deadline::never)->pieces().size_bytes() == 90);
        } else {
            CHECK(net.post(0, on, rill::buffer(90)));
            CHECK(net.post(0, closing, rill::buffer(60), deadline::never));
            CHECK(net.now().ns == 100);
            CHECK(net.post(0, on, rill::buffer(10)));
        }
    });
}

TEST_CASE("a rank count below one and times below zero are refused") {
    const auto nothing = [](sim::endpoint&) {};
    CHECK_THROWS_AS(sim::run(0, {}, nothing), rill::contract_violation);
    CHECK_THROWS_AS(sim::run(1, {.latency = rill::nanoseconds(-1)}, nothing), rill::contract_violation);
    CHECK_THROWS_AS(sim::run(1, {.poll = rill::nanoseconds(0)}, nothing), rill::contract_violation);
}
