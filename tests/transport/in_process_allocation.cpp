#include "../support/allocations.hpp"

#ifndef RILL_TEST_SANITIZED

#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

using namespace rill;

TEST_CASE("in_process: a steady state allocates nothing") {
    unsigned long before = 0, after = 0;
    in_process::run(3, [&](in_process::endpoint& net) {
        const channel on{.context = 1, .tag = 1};
        const int ranks = net.size();
        const rank_t next = (net.rank() + 1) % ranks, previous = (net.rank() + ranks - 1) % ranks;
        const buffer lent(500);
        buffer into(500);
        const byte_span target(into);
        std::vector<buffer> ready(calls_remembered + 100, buffer(500));
        const auto step = [&](std::uint64_t number) {
            net.announce(on.context, {.number = number});
            auto first = net.post(next, on, byte_view(lent));
            auto second = net.post(next, on, byte_view(lent));
            net.post(next, on, std::move(ready[number % ready.size()]));
            net.receive(previous, on, net.now() + seconds(60));
            net.receive_into(previous, on, {&target, 1}, deadline::never);
            net.receive(previous, on, deadline::never);
            first.wait(deadline::never);
            second.wait(net.now() + seconds(60));
            net.inquire(previous, on.context, number, deadline::never);
        };
        // once around the ring of three: when the second message has arrived, all have sent their first
        const auto meet = [&] {
            for (int i = 0; i < 2; ++i) {
                net.post(next, on, buffer());
                net.receive(previous, on, deadline::never);
            }
        };
        for (std::uint64_t i = 0; i < calls_remembered; ++i) step(i);
        meet();
        if (net.rank() == 0) before = all_allocations();
        meet();
        for (std::uint64_t i = calls_remembered; i < calls_remembered + 100; ++i) step(i);
        meet();
        if (net.rank() == 0) after = all_allocations();
    });
    CHECK(before > 0);
    CHECK(after == before);
}

#endif
