// The all_reduces of times.hpp in rill's simulated network, with the links that cluster.xml describes.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/transport/simulated.hpp>

#include "times.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

int main() {
    constexpr int ranks = 64;
    constexpr std::uint64_t bandwidth = 125'000'000;
    const rill::simulated::network cluster{
        .latency = rill::microseconds(50),  // a path is two links of 25 us
        .bandwidth = bandwidth,
        .cards = [](rill::rank_t) { return rill::network_card::full_duplex(bandwidth); },
    };
    times::for_each([&](auto shape, std::size_t floats) {
        std::int64_t slowest = 0;
        rill::simulated::run(ranks, cluster, [&](auto& net) {
            rill::group workers{net, shape};
            std::vector<float> input(floats, 1), output(floats);
            net.sleep_until(rill::time_point{} + rill::seconds(1));
            const auto done = rill::all_reduce(workers, input, output);
            slowest = std::max(slowest, done.elapsed.ns);
        });
        times::print(decltype(shape)::name, floats, slowest);
    });
}
