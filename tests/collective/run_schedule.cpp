#include <rill/collective/all_reduce.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>

#include "cases.hpp"
#include "foresight.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace cases;

namespace {

constexpr auto whole = static_cast<std::size_t>(-1);
using eager = foresight::foreseeing<rill::simulated::endpoint>;

/// How many messages were received directly into their final place on a late rank, in an all_reduce in place.
template <class Shape>
int placed_on_late_rank(int ranks) {
    constexpr std::size_t n = 1200;
    int placed = 0;
    rill::simulated::run(ranks, {.latency = rill::milliseconds(1)}, [&](rill::simulated::endpoint& inner) {
        eager net(inner, whole);
        rill::group workers{net, Shape{}};
        std::vector<float> data(n, 1);
        if (net.rank() == 0)
            net.sleep_until({1'000'000'000});  // the others' first messages have arrived, its own has not been sent
        rill::all_reduce(workers, data, data);
        CHECK(data == std::vector<float>(n, static_cast<float>(ranks)));
        if (net.rank() == 0) placed = net.placed;
    });
    return placed;
}

}  // namespace

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

TEST_CASE("executor: finished parts are received into their place, even if it is being read when the round begins") {
    CHECK(placed_on_late_rank<rill::topology::split_allgather>(2) == 1);
    CHECK(placed_on_late_rank<rill::topology::split_allgather>(4) == 3);
    CHECK(placed_on_late_rank<rill::topology::halving_doubling>(4) == 2);
    CHECK(placed_on_late_rank<rill::topology::ring>(4) == 3);
}
