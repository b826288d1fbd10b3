#include <rill/cost/measure_links.hpp>

#include <rill/collective/group.hpp>
#include <rill/cost/measure_link.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace {

using namespace rill;

/// A link of its own between every two ranks; both ways differ if `one_way`.
std::vector<network_link> some_links(std::size_t size, bool one_way) {
    std::vector<network_link> links(size * size, {duration{}, 0});
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < size; ++j) {
            if (i == j) continue;
            const std::size_t pair = one_way ? i * size + j : std::min(i, j) * size + std::max(i, j);
            links[i * size + j] = {microseconds(10 + static_cast<std::int64_t>(pair)), 1'000'000 * (1 + pair * 7 % 40)};
        }
    return links;
}

std::vector<std::vector<network_link>> measured(const std::vector<network_link>& links, int size,
                                                duration* elapsed = nullptr) {
    std::vector<std::vector<network_link>> all(static_cast<std::size_t>(size));
    simulated::run(size, {.links = matrix_links(size, links)}, [&](simulated::endpoint& net) {
        group workers{net, topology::ring{}};
        all[static_cast<std::size_t>(net.rank())] = cost::measure_links(workers, {.largest_bytes = 1 << 14});
        if (elapsed != nullptr) *elapsed = std::max(*elapsed, net.now() - time_point{});
    });
    return all;
}

}  // namespace

TEST_CASE("a tournament: each meets each other once, and nobody two at a time") {
    for (const int players : {2, 3, 4, 7, 8, 33}) {
        CAPTURE(players);
        std::set<std::pair<rank_t, rank_t>> met;
        const int rounds = cost::detail::tournament_rounds(players);
        CHECK(rounds == players - 1 + players % 2);
        for (int round = 0; round < rounds; ++round)
            for (rank_t player = 0; player < players; ++player) {
                const rank_t other = cost::detail::opponent(players, round, player);
                if (other == no_rank) continue;
                CHECK(other != player);
                CHECK(cost::detail::opponent(players, round, other) == player);
                CHECK(met.insert({player, other}).second);
            }
        CHECK(met.size() == static_cast<std::size_t>(players * (players - 1)));
    }
}

TEST_CASE("measured links are those of the simulated network, exactly and alike on all ranks") {
    for (const int size : {1, 2, 5, 8}) {
        CAPTURE(size);
        const auto links = some_links(static_cast<std::size_t>(size), false);
        for (const auto& each : measured(links, size)) CHECK(each == links);
    }
}

TEST_CASE("links whose ways differ are measured in both") {
    const auto links = some_links(6, true);
    const auto found = measured(links, 6)[0];
    for (std::size_t i = 0; i < links.size(); ++i)
        CHECK(static_cast<double>(found[i].bandwidth) ==
              doctest::Approx(static_cast<double>(links[i].bandwidth)).epsilon(0.02));
}

TEST_CASE("pairs are measured at once") {
    // 8 ranks are 28 pairs in 7 rounds.
    const std::vector<network_link> slow(64, {microseconds(1), 1'000'000});
    duration together{};
    measured(slow, 8, &together);
    duration one{};
    simulated::run(8, {.links = matrix_links(8, slow)}, [&](simulated::endpoint& net) {
        group workers{net, topology::ring{}};
        cost::measure_link(workers, {.largest_bytes = 1 << 14, .repetitions = 3});
        one = std::max(one, net.now() - time_point{});
    });
    CHECK(together.ns < 9 * one.ns);
}

TEST_CASE("with real clocks all ranks get the same links, as speeds too") {
    std::vector<std::vector<network_link>> all(3);
    in_process::run(3, [&](in_process::endpoint& net) {
        group workers{net, topology::ring{}};
        all[static_cast<std::size_t>(net.rank())] = cost::measure_links(workers, {.largest_bytes = 1 << 14});
    });
    CHECK(all[1] == all[0]);
    CHECK(all[2] == all[0]);
    for (const double each : cost::bytes_per_second(all[0])) CHECK(each > 0);
    CHECK(cost::bytes_per_second(std::vector<network_link>{{duration{}, 0}, {duration{}, 5}}) ==
          std::vector<double>{1e18, 5});
}
