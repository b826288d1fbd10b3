#include <rill/concept/shared_memory.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using rill::deadline;
using rill::trace_event;

namespace {

constexpr rill::channel on{.context = 3, .tag = 1};
constexpr std::size_t mailbox_bytes = 4096;

/// Runs a body on transports that record into logs of `capacity` events.
auto recorded(auto run, std::size_t capacity) {
    return [run, capacity](int ranks, auto&& body) {
        run(ranks, [&](auto& net) {
            rill::trace_log log(capacity);
            rill::traced traced{net, log};
            body(traced);
        });
    };
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

static_assert(rill::ConcurrentTransport<rill::traced<rill::simulated::endpoint>>);
static_assert(rill::SharedMemoryTransport<rill::traced<rill::in_process::endpoint>>);
static_assert(rill::SharedMemoryTransport<rill::traced<rill::traced<rill::in_process::endpoint>>>);
static_assert(!rill::SharedMemoryTransport<rill::traced<rill::simulated::endpoint>>);
static_assert(rill::ConcurrentTransport<rill::traced<rill::subgroup<rill::in_process::endpoint>>>);

TEST_CASE("a traced transport keeps the laws of a transport") {
    SUBCASE("simulated, with a full log") {
        check_laws(recorded(
            [](int ranks, auto&& body) {
                rill::simulated::run(
                    ranks, {.control = rill::simulated::control_plane::ideal, .mailbox_bytes = mailbox_bytes}, body);
            },
            10));
    }
    SUBCASE("threads") {
        check_laws(recorded(
            [](int ranks, auto&& body) { rill::in_process::run(ranks, body, {.mailbox_bytes = mailbox_bytes}); },
            10000));
    }
}

TEST_CASE("posts, receives, waits and spans are recorded with their times and peers") {
    std::vector<rill::trace_log> logs(2);
    rill::simulated::run(2, {.latency = rill::nanoseconds(100), .bandwidth = 0}, [&](auto& inner) {
        rill::traced net{inner, logs[static_cast<std::size_t>(inner.rank())]};
        const auto all = net.span("all");
        if (net.rank() == 0) {
            const rill::buffer lent(30);
            auto sent = net.post(1, on, rill::byte_view(lent));
            sent.wait(deadline::never);
        } else {
            const auto message = net.receive(0, on, deadline::never);
            net.sleep_until({150});
        }
    });
    const auto check = [](const trace_event& e, const char* name, trace_event::what kind, std::int64_t begin,
                          std::int64_t end, rill::rank_t peer, std::uint64_t bytes) {
        CHECK(std::string(e.name) == name);
        CHECK(e.kind == kind);
        CHECK(e.begin.ns == begin);
        CHECK(e.end.ns == end);
        CHECK(e.peer == peer);
        CHECK(e.bytes == bytes);
    };
    using enum trace_event::what;
    REQUIRE(logs[0].events().size() == 3);
    check(logs[0].events()[0], "post", post, 0, 0, 1, 30);
    check(logs[0].events()[1], "wait for send", wait, 0, 150, 1, 0);
    check(logs[0].events()[2], "all", span, 0, 150, rill::no_rank, 0);
    REQUIRE(logs[1].events().size() == 3);
    check(logs[1].events()[0], "receive", receive, 0, 100, 0, 30);
    check(logs[1].events()[1], "sleep", span, 100, 150, rill::no_rank, 0);
    check(logs[1].events()[2], "all", span, 0, 150, rill::no_rank, 0);
    CHECK(logs[1].rank() == 1);
}

TEST_CASE("unsuccessful calls are recorded if they took time") {
    rill::trace_log log;
    rill::simulated::run(1, {.mailbox_bytes = 10}, [&](auto& inner) {
        rill::traced net{inner, log};
        CHECK(!net.receive(0, on, net.now() + rill::nanoseconds(50)));
        CHECK(net.post(0, on, rill::buffer(10)));
        CHECK(!net.post(0, on, rill::buffer(1), net.now() + rill::nanoseconds(20)));
    });
    REQUIRE(log.events().size() == 3);
    CHECK(std::string(log.events()[0].name) == "receive nothing");
    CHECK(log.events()[0].kind == trace_event::what::wait);
    CHECK(std::string(log.events()[2].name) == "post refused");
    CHECK(log.events()[2].end.ns == 70);
}
