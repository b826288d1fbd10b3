// Measures the link between processes. Its speed is not known, but all ranks must get the same result.
#include <rill/aggregate/max.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/cost/measure_link.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

TEST_CASE("a measured link is the same on all ranks") {
    processes::run(processes::count(), [](auto& net) {
        if (net.size() == 1) return;
        rill::group workers{net, rill::topology::tree{}};
        const rill::network_link found =
            rill::cost::measure_link(workers, {.largest_bytes = std::size_t{1} << 18, .repetitions = 3});
        CHECK(found.latency.ns >= 0);
        const std::array<std::int64_t, 2> mine{found.latency.ns, static_cast<std::int64_t>(found.bandwidth)};
        std::array<std::int64_t, 2> least{}, most{};
        rill::all_reduce(workers, mine, least, rill::aggregate::min{});
        rill::all_reduce(workers, mine, most, rill::aggregate::max{});
        CHECK(least == most);
    });
}
