#include <rill/testing/transport_laws.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

using namespace rill;

namespace {

constexpr channel on{.context = 1, .tag = 1};
constexpr channel signal{.context = 1, .tag = 2};

/// Sends an empty signal to `peer`.
void tell(in_process::endpoint& net, rank_t peer) { REQUIRE(net.post(peer, signal, buffer(), deadline::never)); }
void hear(in_process::endpoint& net, rank_t peer) { net.receive(peer, signal, deadline::never); }

}  // namespace

TEST_CASE("in_process keeps the laws of a transport") {
    constexpr std::size_t mailbox_bytes = 4096;
    int laws = 0;
    testing::for_each_law(
        [](int ranks, auto&& body) { in_process::run(ranks, body, {.mailbox_bytes = mailbox_bytes}); },
        {.mailbox_bytes = mailbox_bytes},
        [&](const char* name, const testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
    CHECK(laws > 40);
}

TEST_CASE("in_process keeps the laws when waits sleep immediately") {
    testing::for_each_law(
        [](int ranks, auto&& body) { in_process::run(ranks, body, {.mailbox_bytes = 4096, .spins = 0, .yields = 0}); },
        {.mailbox_bytes = 4096, .large_bytes = 1000, .largest_bytes = 1000, .most_ranks = 16},
        [](const char* name, const testing::law_outcome& outcome) {
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
}

namespace {
std::atomic<int> ranks_seen{0};
void see_rank(rill::in_process::endpoint& net) { ranks_seen += 1 + net.rank(); }
}  // namespace

TEST_CASE("in_process: a body may be a function") {
    rill::in_process::run(3, see_rank);
    CHECK(ranks_seen == 6);
}

TEST_CASE("in_process: a lent message is read in the sender's memory, a handed-over buffer is moved") {
    const buffer lent(1000);
    std::atomic<const std::byte*> moved{nullptr};
    in_process::run(2, [&](in_process::endpoint& net) {
        if (net.rank() == 0) {
            auto sent = net.post(1, on, byte_view(lent));
            buffer bytes(1000);
            moved = bytes.data();
            CHECK(net.post(1, on, std::move(bytes)));
            CHECK(sent.wait(deadline::never));
        } else {
            CHECK(net.receive(0, on, deadline::never)->pieces()[0].data() == lent.data());
            const auto second = net.receive(0, on, deadline::never);
            CHECK(second->pieces()[0].data() == moved.load());
        }
    });
}

TEST_CASE("in_process: any-of-set takes the earliest arrival, receive_latest the newest") {
    in_process::run(5, [](in_process::endpoint& net) {
        if (net.rank() != 0) {
            // The ranks send one after the other, in descending order, so that the arrivals have an order.
            if (net.rank() != 4) hear(net, net.rank() + 1);
            for (const std::uint32_t tag : {7U, 8U}) net.post(0, {.context = 1, .tag = tag}, buffer(1));
            tell(net, net.rank() - 1);
            return;
        }
        hear(net, 1);
        const rank_t peers[] = {1, 2, 3, 4};
        for (rank_t source = 4; source > 0; --source)
            CHECK(net.receive(peers, {.context = 1, .tag = 7}, deadline::immediate)->source() == source);
        CHECK(net.receive_latest(peers, {.context = 1, .tag = 8}, deadline::immediate)->source() == 1);
        CHECK_FALSE(net.receive(peers, {.context = 1, .tag = 8}, deadline::immediate).has_value());
    });
}

TEST_CASE("in_process: dropping a `sending` while its message is read does not affect the reader") {
    const buffer lent = testing::detail::pattern(100, 1);
    in_process::run(2, [&](in_process::endpoint& net) {
        for (int round = 0; round < 50; ++round) {
            if (net.rank() == 0) {
                {
                    const auto sent = net.post(1, on, byte_view(lent));
                    hear(net, 1);
                }
                if (round % 2 == 0) tell(net, 1);
            } else {
                const auto message = net.receive(0, on, deadline::never);
                tell(net, 0);
                if (round % 2 == 0) hear(net, 0);
                CHECK(testing::detail::same_bytes(message->pieces(), lent));
            }
        }
    });
}

TEST_CASE("in_process: messages after close are dropped and block nobody") {
    in_process::run(1,
                    [](in_process::endpoint& net) {
                        const buffer lent(10);
                        auto early = net.post(0, on, byte_view(lent));
                        net.announce(on.context, {.number = 3});
                        net.close(on.context);
                        CHECK(early.wait(deadline::never));
                        auto late = net.post(0, on, byte_view(lent));
                        CHECK(late.done());
                        for (int i = 0; i < 10; ++i) CHECK(net.post(0, on, buffer(100)));
                        CHECK_FALSE(net.receive(0, on, deadline::immediate).has_value());
                        CHECK(net.inquire(0, on.context, 3, deadline::immediate)->number == 3);
                        net.close(on.context);
                    },
                    {.mailbox_bytes = 100});
}

TEST_CASE("in_process: a rank that asks for a call that was skipped gets the latest one, announced or exposed") {
    in_process::run(1, [](in_process::endpoint& net) {
        const auto latest_after = [&](std::uint64_t number) {
            const auto call = net.inquire(0, on.context, number, deadline::immediate);
            return call ? call->number : 0;
        };
        auto shared = net.share(on.context);
        CHECK(latest_after(3) == 0);
        shared.expose({.call = {.number = 4}});
        CHECK(latest_after(3) == 4);
        net.announce(on.context, {.number = 6});
        CHECK(latest_after(3) == 6);
        CHECK(latest_after(4) == 4);
        shared.expose({.call = {.number = 8}});
        CHECK(latest_after(3) == 8);
        CHECK(latest_after(6) == 6);
        CHECK(latest_after(7) == 8);
        CHECK(latest_after(8) == 8);
        CHECK(latest_after(9) == 0);
        net.announce(2, {.number = 5});
        CHECK(net.inquire(0, 2, 4, deadline::immediate)->number == 5);
    });
}

TEST_CASE("in_process: preparing waits for a rank that is still in an operation of another handle") {
    constexpr std::uint64_t held = 1;
    // Three slots: the fourth operation uses the first one's slot again. Without slots it uses the exposed places
    // again.
    for (const bool with_slots : {true, false})
        in_process::run(2, [&](in_process::endpoint& net) {
            const rank_t peer = 1 - net.rank();
            const deadline wait = net.now() + seconds(20);
            const std::uint64_t last = with_slots ? 3 : in_process::window::places;
            auto first = net.share(on.context), further = net.share(on.context);
            const std::byte* kept = nullptr;
            for (std::uint64_t number = held; number <= last; ++number) {
                const bool holds = net.rank() == 1 && number == held;
                auto& shared = holds ? first : further;
                CHECK(shared.has_room(peer, number, wait));
                const byte_span slot = with_slots ? shared.slot(number, 1) : byte_span();
                if (with_slots) slot[0] = std::byte(number);
                shared.expose({.call = {.number = number}, .input = slot.data()});
                const exposure* seen = shared.exposed(peer, {.number = number}, wait);
                REQUIRE(seen != nullptr);
                if (holds)
                    kept = seen->input;
                else
                    shared.pass(number);
            }
            if (net.rank() == 0) {
                further.prepare(last + 1);
                CHECK(!further.has_room(1, last + 1, deadline::immediate));
                tell(net, 1);
                CHECK(further.has_room(1, last + 1, wait));
            } else {
                hear(net, 0);
                if (with_slots) CHECK(kept[0] == std::byte(held));
                first.pass(held);
            }
        });
}

TEST_CASE("in_process: closed contexts are eventually forgotten") {
    in_process::detail::call_table calls;
    for (std::uint64_t context = 0; context < 3 * calls.closed_remembered; ++context) {
        calls.announce(context, {.number = 1});
        calls.close(context);
    }
    CHECK_FALSE(calls.is_closed(0));
    CHECK_FALSE(calls.entered(0, 1).has_value());
    CHECK(calls.is_closed(3 * calls.closed_remembered - 1));
}

TEST_CASE("in_process: run rethrows the culprit's own exception, though others threw earlier") {
    CHECK_THROWS_AS(in_process::run(3,
                                    [](in_process::endpoint& net) {
                                        if (net.rank() != 1) net.receive(1, on, deadline::never);
                                        net.abort({.context = on.context, .culprit = 1, .reason = "rank 1 fails"});
                                        CHECK_THROWS_AS(net.sleep_until(net.now() + seconds(3600)), peer_failure);
                                        throw std::out_of_range("of rank 1");
                                    }),
                    std::out_of_range);
}

TEST_CASE("in_process: run rethrows an exception that is no std::exception, and refuses zero ranks and foreign peers") {
    CHECK_THROWS_AS(in_process::run(3,
                                    [](in_process::endpoint& net) {
                                        if (net.rank() == 2) throw 42;
                                        net.sleep_until(net.now() + seconds(3600));
                                    }),
                    int);
    CHECK_THROWS_AS(in_process::run(0, [](in_process::endpoint&) {}), contract_violation);
    in_process::run(2, [](in_process::endpoint& net) {
        CHECK_THROWS_AS(net.receive(2, on, deadline::immediate), contract_violation);
        CHECK_THROWS_AS(net.post(-1, on, buffer()), contract_violation);
    });
}
