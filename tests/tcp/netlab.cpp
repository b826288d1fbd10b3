// What tests/tcp/netlab_test.py runs on the hosts of an emulated cluster.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/tcp.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

using namespace rill;

TEST_CASE("sums of the ranks that a launcher has started are exact" * doctest::skip()) {
    constexpr int rounds = 40;
    constexpr std::size_t size = std::size_t{1} << 18;
    tcp::run([](auto& net) {
        group workers{net, topology::ring{}};
        const int ranks = net.size();
        std::vector<float> values(size), sum(size);
        for (int round = 1; round <= rounds; ++round) {
            for (std::size_t i = 0; i < size; ++i)
                values[i] = static_cast<float>((net.rank() + 1) * (round + static_cast<int>(i % 1000)));
            all_reduce(workers, values, sum);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < size; ++i)
                wrong += sum[i] != static_cast<float>(ranks * (ranks + 1) / 2 * (round + static_cast<int>(i % 1000)))
                             ? 1
                             : 0;
            CHECK(wrong == 0);
            if (net.rank() != 0) continue;
            std::printf("round %d\n", round);
            std::fflush(stdout);
        }
    });
}
