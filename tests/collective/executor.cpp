#include <rill/collective/all_reduce.hpp>
#include <rill/collective/executor.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/simulated.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace cases;

TEST_CASE("executor: a schedule takes the time of its rounds and no more") {
    constexpr std::size_t n = 1200;
    const rill::simulated::network links{.latency = rill::microseconds(10), .bandwidth = 1'000'000'000};
    for (int ranks : {2, 4, 8, 40})
        rill::simulated::run(ranks, links, [&](auto& net) {
            rill::group workers{net, rill::topology::ring{}};
            std::vector<float> data(n, 1), result(n);
            net.sleep_until({1'000'000'000});  // all start at once
            const rill::receipt done = rill::all_reduce(workers, data, result);
            const std::size_t frame = rill::wire::header_bytes + n / static_cast<std::size_t>(ranks) * sizeof(float);
            const rill::duration round = links.latency + rill::transfer_time(frame, links.bandwidth);
            CHECK(done.rounds == 2 * (ranks - 1));
            CHECK(done.elapsed.ns == (round * done.rounds).ns);
        });
}
