#include <rill/transport/delayed.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using rill::deadline;
using rill::rank_t;

namespace {

constexpr rill::channel on{.context = 3, .tag = 1};
constexpr std::size_t mailbox_bytes = 16384;
constexpr std::size_t with_stamps = mailbox_bytes + 32;  // the laws fill a mailbox with two messages

const rill::simulated::network no_network{.latency = {}, .bandwidth = 0};
constexpr rill::delays one_byte_per_ns{.latency = rill::nanoseconds(100), .bandwidth = 1'000'000'000};

/// Runs `body(net)` on delayed transports in virtual time, where only the delays take time.
void simulate(int ranks, const rill::delays& chosen, auto&& body) {
    rill::simulated::run(ranks, no_network, [&](auto& inner) {
        rill::delayed net{inner, chosen};
        body(net);
    });
}

void check_laws(auto&& runner) {
    int laws = 0;
    rill::testing::for_each_law(
        runner, {.mailbox_bytes = mailbox_bytes, .large_bytes = 100'000, .largest_bytes = 1'000'000, .most_ranks = 16},
        [&](const char* name, const rill::testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
    CHECK(laws > 40);
}

}  // namespace

static_assert(rill::ConcurrentTransport<rill::delayed<rill::in_process::endpoint>>);
static_assert(!rill::SharedMemoryTransport<rill::delayed<rill::in_process::endpoint>>);
static_assert(rill::MonitoredTransport<rill::delayed<rill::simulated::endpoint>>);
static_assert(rill::ConcurrentTransport<rill::traced<rill::delayed<rill::simulated::endpoint>>>);
static_assert(rill::ConcurrentTransport<rill::subgroup<rill::delayed<rill::simulated::endpoint>>>);

TEST_CASE("a delayed transport keeps the laws of a transport") {
    const auto delayed = [](auto& body) {
        return [&body](auto& inner) {
            rill::delayed net{inner, {.latency = rill::microseconds(30), .bandwidth = 2'000'000'000}};
            body(net);
        };
    };
    SUBCASE("simulated") {
        check_laws([&](int ranks, auto&& body) {
            rill::simulated::run(
                ranks, {.control = rill::simulated::control_plane::ideal, .mailbox_bytes = with_stamps}, delayed(body));
        });
    }
    SUBCASE("threads") {
        check_laws([&](int ranks, auto&& body) {
            rill::in_process::run(ranks, delayed(body), {.mailbox_bytes = with_stamps});
        });
    }
    SUBCASE("simulated, with a link to each rank") {
        check_laws([](int ranks, auto&& body) {
            rill::simulated::run(
                ranks, {.control = rill::simulated::control_plane::ideal, .mailbox_bytes = with_stamps},
                [&body](auto& inner) {
                    rill::delayed net{inner, [](rank_t source, rank_t receiver) {
                                          return rill::network_link{
                                              .latency = rill::microseconds(20 + (3 * source + receiver) % 20),
                                              .bandwidth = 2'000'000'000};
                                      }};
                    body(net);
                });
        });
    }
}

TEST_CASE("a message arrives after its transfer over its sender's link and the latency") {
    simulate(3, one_byte_per_ns, [](auto& net) {
        if (net.rank() == 0) {
            const rill::buffer lent(1000);
            auto first = net.post(1, on, rill::byte_view(lent));
            CHECK(net.post(2, on, rill::buffer(500)));  // behind it on the same link
            CHECK(first.wait(deadline::never));
            CHECK(net.now().ns == 1100);
            net.compute(rill::nanoseconds(1000));
            CHECK(net.post(1, on, rill::buffer(10)));  // the link is free again
        } else if (net.rank() == 1) {
            CHECK(!net.receive(0, on, rill::time_point{1099}));
            CHECK(net.now().ns == 1099);
            CHECK(net.receive(0, on, deadline::never)->pieces().size_bytes() == 1000);
            CHECK(net.now().ns == 1100);
            CHECK(net.receive(0, on, deadline::never)->pieces().size_bytes() == 10);
            CHECK(net.now().ns == 2210);
        } else {
            CHECK(net.receive(0, on, deadline::never)->source() == 0);
            CHECK(net.now().ns == 1600);
        }
    });
}

namespace {

/// Links that differ by their ends and by the way: 1 to 8 ns a byte, latencies from 10 ns.
rill::network_link some_link(rank_t source, rank_t receiver) {
    constexpr std::uint64_t ns_a_byte[] = {1, 2, 4, 5, 8};
    return {.latency = rill::nanoseconds(10 + 100 * source + receiver),
            .bandwidth = 1'000'000'000 / ns_a_byte[(3 * source + 4 * receiver) % 5]};
}

/// When the messages of a rank arrive that has sent some to each other one, in the order of the senders.
std::vector<std::int64_t> arrivals(auto& net) {
    for (std::size_t number = 1; number <= 3; ++number)
        for (rank_t peer = 0; peer < net.size(); ++peer)
            if (peer != net.rank()) CHECK(net.post(peer, on, rill::buffer(100'000 * number)));
    std::vector<rank_t> others;
    for (rank_t peer = 0; peer < net.size(); ++peer)
        if (peer != net.rank()) others.push_back(peer);
    std::vector<std::vector<std::int64_t>> of(static_cast<std::size_t>(net.size()));
    for (std::size_t i = 0; i < 3 * others.size(); ++i) {
        const auto source = net.receive(others, on, deadline::never)->source();
        of[static_cast<std::size_t>(source)].push_back(net.now().ns);
    }
    std::vector<std::int64_t> all;
    for (const auto& each : of) all.insert(all.end(), each.begin(), each.end());
    return all;
}

}  // namespace

TEST_CASE("with a link to each rank, messages arrive as in a simulated network with these links") {
    constexpr int ranks = 5;
    std::vector<std::vector<std::int64_t>> due(ranks), found(ranks);
    rill::simulated::network like = no_network;
    like.links = some_link;
    rill::simulated::run(ranks, like, [&](auto& net) { due[static_cast<std::size_t>(net.rank())] = arrivals(net); });
    rill::simulated::run(ranks, no_network, [&](auto& inner) {
        rill::delayed net{inner, some_link};
        found[static_cast<std::size_t>(net.rank())] = arrivals(net);
    });
    CHECK(due[1][2] == 600'000 * 8 + 11);  // from rank 0: 8 ns a byte, behind two others
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        REQUIRE(found[rank].size() == due[rank].size());
        for (std::size_t i = 0; i < due[rank].size(); ++i) {
            CHECK(found[rank][i] >= due[rank][i]);
            CHECK(found[rank][i] <= due[rank][i] + 200);  // a poll that finds nothing takes 100 ns
        }
    }
}

TEST_CASE("messages to one rank do not delay those to another that has a link of its own") {
    rill::simulated::run(3, no_network, [](auto& inner) {
        const std::vector<rill::network_link> rows(9, {.latency = {}, .bandwidth = 1'000'000'000});
        rill::delayed net{inner, rill::matrix_links(3, rows)};
        if (net.rank() != 0) {
            CHECK(net.receive(0, on, deadline::never));
            CHECK(net.now().ns == (net.rank() == 1 ? 1000 : 500));
            return;
        }
        CHECK(net.post(1, on, rill::buffer(1000)));
        CHECK(net.post(2, on, rill::buffer(500)));
    });
}

TEST_CASE("a refused message leaves its own link free") {
    rill::simulated::run(3, {.latency = {}, .bandwidth = 0, .mailbox_bytes = 10}, [](auto& inner) {
        rill::delayed net{inner, some_link};  // from rank 0 to rank 1: 8 ns a byte
        if (net.rank() == 2) return net.sleep_until({100'000});
        if (net.rank() == 1) {
            net.sleep_until({1000});
            for (const std::int64_t due : {8011, 17'011}) {
                CHECK(net.receive(0, on, deadline::never));
                CHECK(net.now().ns == due);
            }
            return;
        }
        CHECK(net.post(1, on, rill::buffer(1000)));
        rill::buffer refused(5000);
        CHECK(!net.post(1, on, std::move(refused), rill::time_point{900}));
        net.sleep_until({9000});
        CHECK(net.post(1, on, rill::buffer(1000), deadline::never));
    });
}

TEST_CASE("an end is told after the latency of the link from the rank that has ended") {
    constexpr rill::channel events{.context = on.context, .tag = 2};
    rill::simulated::run(2, no_network, [&](auto& inner) {
        rill::delayed net{inner, some_link};
        if (net.rank() == 1) return;
        net.monitor(events);
        CHECK(net.receive(1, events, deadline::never));
        CHECK(net.now().ns == doctest::Approx(110).epsilon(0.02));
    });
}

TEST_CASE("a link with a negative latency is named by its ends") {
    rill::simulated::run(3, no_network, [](auto& inner) {
        if (inner.rank() != 1) return;
        const auto backwards = [](rank_t, rank_t receiver) {
            return rill::network_link{.latency = rill::nanoseconds(receiver == 2 ? -5 : 5), .bandwidth = 0};
        };
        CHECK_THROWS_WITH_AS(
            (rill::delayed{inner, backwards}),
            "rill: delayed: latency (ns) of the link to rank 2 is -5; it must be at least 0, on rank 1",
            rill::contract_violation);
    });
}

TEST_CASE("a message to oneself takes no time and does not occupy the link") {
    simulate(2, one_byte_per_ns, [](auto& net) {
        if (net.rank() != 0) {
            CHECK(net.receive(0, on, deadline::never));
            CHECK(net.now().ns == 101);
            return;
        }
        CHECK(net.post(0, on, rill::buffer(1000)));
        CHECK(net.post(1, on, rill::buffer(1)));
        CHECK(net.receive(0, on, deadline::immediate));
    });
}

TEST_CASE("a refused message leaves the link free") {
    rill::simulated::run(2, {.latency = {}, .bandwidth = 0, .mailbox_bytes = 10}, [](auto& inner) {
        rill::delayed net{inner, one_byte_per_ns};
        if (net.rank() != 0) {
            net.sleep_until({1000});  // the time that a receiver waits for room counts as transfer time
            for (const std::int64_t due : {1100, 2200}) {
                CHECK(net.receive(0, on, deadline::never));
                CHECK(net.now().ns == due);
            }
            return;
        }
        CHECK(net.post(1, on, rill::buffer(1000)));
        rill::buffer refused(5000);
        CHECK(!net.post(1, on, std::move(refused), rill::time_point{900}));
        CHECK(refused.size() == 5000);
        net.sleep_until({1100});
        CHECK(net.post(1, on, rill::buffer(1000), deadline::never));
    });
}

TEST_CASE("of several senders' messages the one that arrives first is received first") {
    simulate(4, one_byte_per_ns, [](auto& net) {
        if (net.rank() != 0) {
            const std::size_t size = net.rank() == 1 ? 3000 : 10 * static_cast<std::size_t>(net.rank());
            CHECK(net.post(0, on, rill::buffer(size)));
            return;
        }
        const rank_t peers[] = {1, 2, 3};
        net.sleep_until({125});
        std::vector<rank_t> order;
        for (int i = 0; i < 3; ++i) order.push_back(net.receive(peers, on, deadline::never)->source());
        CHECK(order == std::vector<rank_t>{2, 3, 1});
        CHECK(net.now().ns == 3100);
    });
}

TEST_CASE("the newest message is the newest that has arrived") {
    simulate(2, one_byte_per_ns, [](auto& net) {
        if (net.rank() == 1) {
            for (const std::size_t size : {10U, 20U, 5000U}) CHECK(net.post(0, on, rill::buffer(size)));
            return;
        }
        const rank_t peer = 1;
        net.sleep_until({200});
        CHECK(net.receive_latest({&peer, 1}, on, deadline::immediate)->pieces().size_bytes() == 20);
        CHECK(!net.receive_latest({&peer, 1}, on, deadline::immediate));
        CHECK(net.receive_latest({&peer, 1}, on, deadline::never)->pieces().size_bytes() == 5000);
    });
}

TEST_CASE("a message of the largest number of pieces arrives whole") {
    simulate(2, one_byte_per_ns, [](auto& net) {
        rill::buffer lent(8);
        for (std::size_t i = 0; i < lent.size(); ++i) lent[i] = std::byte(i);
        rill::byte_pieces pieces;
        for (std::size_t i = 0; i < rill::byte_pieces::most; ++i) pieces.push(rill::byte_view(lent).subspan(2 * i, 2));
        if (net.rank() == 0) {
            auto sent = net.post(1, on, pieces);
            CHECK(sent.wait(deadline::never));
            CHECK(net.counted() == rill::traffic{.messages_sent = 1, .bytes_sent = 8});
            return;
        }
        rill::buffer whole(8);
        const rill::byte_span target(whole);
        CHECK(net.receive_into(0, on, {&target, 1}, deadline::never));
        CHECK(whole == lent);
    });
}

TEST_CASE("a rank without delays among delayed ones is named") {
    rill::simulated::run(2, no_network, [](auto& inner) {
        if (inner.rank() == 1) {
            inner.post(0, on, rill::buffer(3));
            return;
        }
        rill::delayed net{inner};
        try {
            net.receive(1, on, deadline::never);
            FAIL("received");
        } catch (const rill::protocol_error& thrown) {
            CHECK(thrown.notice().reason.find("3 bytes from rank 1") != std::string::npos);
        }
    });
}

TEST_CASE("a collective on delayed transports ends on every rank when one of them fails") {
    struct fails : rill::aggregate::sum {
        float fold(float a, float b) const { return a + b > 50 ? throw std::out_of_range("too much") : a + b; }
    };
    const auto sum_with = [](auto& inner, float own, const auto& fold) {
        rill::delayed net{inner, {.latency = rill::microseconds(20), .bandwidth = 100'000'000}};
        rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(20)}};
        std::vector<float> values(1000, own);
        rill::all_reduce(workers, values, values, fold);
        return values[999];
    };
    const auto succeed = [&](auto& inner) { CHECK(sum_with(inner, 1, rill::aggregate::sum{}) == 5); };
    const auto fail = [&](auto& inner) {
        CHECK_THROWS_AS(sum_with(inner, inner.rank() == 3 ? 100.0F : 1.0F, fails{}), std::exception);
    };
    rill::simulated::run(5, {}, succeed);
    rill::in_process::run(5, succeed);
    rill::simulated::run(5, {}, fail);
    rill::in_process::run(5, fail);
}

TEST_CASE("compute takes the time of its model through every transport adapter, and no time without a model") {
    const rill::slowed_ranks model{.times = rill::constant_compute{rill::nanoseconds(10)}, .factors = {1, 3}};
    rill::simulated::run(2, no_network, [&](auto& inner) {
        rill::delayed net{inner, one_byte_per_ns, model};
        rill::trace_log log(10);
        rill::subgroup among{net, rill::view::all(net)};
        rill::traced traced{among, log};
        const std::int64_t unit = net.rank() == 0 ? 10 : 30;
        rill::compute(net, 2);
        CHECK(net.now().ns == 2 * unit);
        rill::compute(traced, 5);
        CHECK(net.now().ns == 7 * unit);
        REQUIRE(log.events().size() == 1);
        CHECK(std::string(log.events()[0].name) == "compute");
        CHECK(log.events()[0].begin.ns == 2 * unit);
        rill::delayed without{inner, one_byte_per_ns};
        rill::compute(without, 1e9);
        CHECK(net.now().ns == 7 * unit);
    });
    rill::in_process::run(1, [](auto& net) { rill::compute(net, 1e12); });  // would take longer than the test
}

TEST_CASE("each computation is drawn by its number, whichever activity computes") {
    const rill::compute_trace model({{rill::nanoseconds(5), rill::nanoseconds(70)}});
    simulate(1, one_byte_per_ns, [&](auto& net) {
        rill::delayed timed{net.inner(), one_byte_per_ns, model};
        auto other = timed.spawn([&] { timed.compute(1); });
        timed.compute(1);
        other.join();
        CHECK(timed.now().ns == 70);
    });
}

TEST_CASE("an end is told after the latency, and after all that is on the way") {
    constexpr rill::channel events{.context = on.context, .tag = 2}, beside{.context = on.context, .tag = 3};
    rill::delays slow = one_byte_per_ns;
    simulate(3, slow, [&](auto& net) {
        if (net.rank() == 2) return;  // ends at once
        if (net.rank() == 1) {
            CHECK(net.post(0, on, rill::buffer(1000)));
            CHECK(net.post(0, beside, rill::buffer(5000)));
            return;
        }
        net.monitor(events);
        const auto told = net.receive(2, events, deadline::never);
        CHECK(rill::read_peer_event(*told) == rill::peer_event{rill::peer_change::ended, net.incarnation(2)});
        CHECK(net.now().ns == doctest::Approx(100).epsilon(0.02));
        CHECK_THROWS_AS(net.receive(2, on, deadline::never), rill::peer_failure);
        CHECK(!net.receive(1, on, deadline::immediate));  // under way: its sender's end is no reason to throw
        constexpr rank_t both[] = {1, 2};
        CHECK(!net.receive(both, on, deadline::immediate));
        CHECK(net.receive(1, events, deadline::never));
        CHECK(net.now().ns == doctest::Approx(1100).epsilon(0.01));
        CHECK(net.receive(1, on, deadline::immediate));
        CHECK(net.receive(1, beside, deadline::immediate));  // what the link still carried comes with the end
        CHECK_THROWS_AS(net.receive(1, beside, deadline::immediate), rill::peer_failure);
    });
}

TEST_CASE("a fence also drops what is held until it is due") {
    constexpr rill::channel events{.context = 4, .tag = 0};
    simulate(2, one_byte_per_ns, [&](auto& net) {
        if (net.rank() == 1) {
            CHECK(net.post(0, on, rill::buffer(10)));
            return;
        }
        net.monitor(events);
        CHECK(!net.receive(1, on, rill::time_point{50}));  // taken, not due
        net.fence(1, net.incarnation(1));
        CHECK(!net.receive(1, on, rill::time_point{500}));
        CHECK(!net.receive(1, events, rill::time_point{600}));
    });
}

TEST_CASE("what a restarted rank sends comes after the end of its last life") {
    namespace faults = rill::faults;
    constexpr rill::channel events{.context = 4, .tag = 0};
    rill::simulated::network mortal = no_network;
    mortal.faults = {{faults::kill(1).at(rill::nanoseconds(50)), faults::restart(1).at(rill::nanoseconds(20))}};
    mortal.control = rill::simulated::control_plane::ideal;
    rill::simulated::run(2, mortal, [&](auto& inner) {
        rill::delayed net{inner, one_byte_per_ns};
        if (net.rank() == 1) {
            CHECK(net.post(0, on, rill::buffer(inner.restarts() == 0 ? 1000 : 10)));
            return net.sleep_until({10'000});
        }
        net.monitor(events);
        const auto next = [&] { return rill::read_peer_event(*net.receive(1, events, deadline::never)).kind; };
        CHECK(next() == rill::peer_change::ended);
        CHECK(net.now().ns == doctest::Approx(150).epsilon(0.02));
        CHECK(next() == rill::peer_change::arrived);
        CHECK(net.receive(1, on, deadline::immediate)->pieces().size_bytes() == 1000);
        CHECK(net.receive(1, on, deadline::never)->pieces().size_bytes() == 10);
    });
}
