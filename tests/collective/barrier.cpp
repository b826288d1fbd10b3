#include <rill/collective/barrier.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <atomic>

using namespace cases;

TEST_CASE("no rank leaves a barrier before all have come") {
    for_each_topology([](auto shape) {
        for (int ranks : rank_counts) {
            std::atomic<int> arrived{0};
            std::atomic<int> early{0};
            const auto body = [&](auto& net) {
                rill::group workers{net, shape};
                ++arrived;
                const auto receipt = rill::barrier(workers);
                if (arrived < ranks || receipt.contributors != ranks) ++early;
            };
            rill::in_process::run(ranks, body);
            CHECK(early == 0);
            arrived = 0;
            rill::simulated::run(ranks, {}, body);
            CHECK(early == 0);
        }
    });
}

TEST_CASE("a barrier takes the time of its rounds in virtual time") {
    rill::duration slowest{};
    rill::simulated::run(8, {.latency = rill::microseconds(50)}, [&](auto& net) {
        rill::group workers{net, rill::topology::recursive_doubling{}};
        const auto receipt = rill::barrier(workers);
        if (slowest < receipt.elapsed) slowest = receipt.elapsed;
    });
    CHECK(slowest >= rill::microseconds(150));
    CHECK(slowest < rill::microseconds(300));
}
