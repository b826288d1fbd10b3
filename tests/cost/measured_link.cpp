#include <rill/cost/measured_link.hpp>

#include <rill/collective/group.hpp>
#include <rill/cost/measure_costs.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace rill;

/// What each rank of a simulated network measures.
std::vector<cost::measured_link> loaded(int ranks, const simulated::network& net, const cost::link_probe& probe = {}) {
    std::vector<cost::measured_link> all(static_cast<std::size_t>(ranks));
    simulated::run(ranks, net, [&](simulated::endpoint& self) {
        group workers{self, topology::ring{}};
        all[static_cast<std::size_t>(self.rank())] = cost::measure_loaded_link(workers, probe);
    });
    return all;
}

}  // namespace

TEST_CASE("without cards a link is as fast under load as alone, and all ranks measure that exactly") {
    for (const int ranks : {2, 3, 8})
        for (const std::uint64_t bandwidth : {std::uint64_t{0}, std::uint64_t{125'000'000}}) {
            CAPTURE(ranks);
            CAPTURE(bandwidth);
            const rill::network_link given{microseconds(50), bandwidth};
            const cost::measured_link expected{.link = given,
                                               .both_ways = bandwidth,
                                               .all_to_one = bandwidth * static_cast<std::uint64_t>(ranks - 1),
                                               .one_to_all = bandwidth * static_cast<std::uint64_t>(ranks - 1)};
            const auto all = loaded(ranks, {.links = uniform_links{given}});
            CHECK(all == std::vector<cost::measured_link>(static_cast<std::size_t>(ranks), expected));
        }
}

TEST_CASE("a card that receives one message at a time limits what all others send to one, and not a pair") {
    const auto card = [](rank_t) { return network_card::full_duplex(100'000'000); };
    const auto all = loaded(5, {.latency = microseconds(20), .bandwidth = 100'000'000, .cards = card});
    CHECK(all == std::vector<cost::measured_link>(5, all[0]));
    CHECK(static_cast<double>(all[0].both_ways) == doctest::Approx(1e8).epsilon(0.01));
    CHECK(static_cast<double>(all[0].all_to_one) == doctest::Approx(1e8).epsilon(0.02));
    CHECK(static_cast<double>(all[0].one_to_all) == doctest::Approx(1e8).epsilon(0.02));
}

TEST_CASE("a half-duplex line is half as fast both ways; a card that only receives one at a time limits no sender") {
    const auto half = loaded(3, {.latency = microseconds(20), .bandwidth = 100'000'000, .half_duplex = true});
    CHECK(half[0].link.bandwidth == 100'000'000);
    CHECK(static_cast<double>(half[0].both_ways) == doctest::Approx(5e7).epsilon(0.1));
    const auto card = [](rank_t) { return network_card::single_receive(100'000'000); };
    const auto incast = loaded(5, {.latency = microseconds(20), .bandwidth = 100'000'000, .cards = card});
    CHECK(static_cast<double>(incast[0].all_to_one) == doctest::Approx(1e8).epsilon(0.02));
    CHECK(static_cast<double>(incast[0].one_to_all) == doctest::Approx(4e8).epsilon(0.02));
}

TEST_CASE("from times with a step: the size from which a message costs a round trip, and the link without it") {
    using cost::detail::round_trip;
    std::vector<round_trip> trips;
    for (const std::uint64_t bytes : {64U, 320U, 1088U, 4160U, 16448U, 65600U, 262208U, 1048640U}) {
        const std::int64_t noise = static_cast<std::int64_t>(bytes % 7) * 30;
        const std::int64_t one_way = 10'000 + static_cast<std::int64_t>(bytes) * 8 + (bytes > 16'000 ? 20'000 : 0);
        trips.push_back({bytes, nanoseconds(2 * (one_way + noise))});
    }
    const auto found = cost::detail::fit_stepped_link(trips);
    CHECK(found.round_trip_from == 16448);
    CHECK(static_cast<double>(found.link.latency.ns) == doctest::Approx(10'000).epsilon(0.05));
    CHECK(static_cast<double>(found.link.bandwidth) == doctest::Approx(125e6).epsilon(0.05));
    for (round_trip& each : trips) each.time = nanoseconds(20'000 + static_cast<std::int64_t>(each.bytes) * 16 + 40);
    CHECK(cost::detail::fit_stepped_link(trips).round_trip_from == 0);
    CHECK(cost::detail::fit_stepped_link(trips).at_once == 0);
}

TEST_CASE("under load the longest messages say the speed, where a burst lets shorter ones pass at once") {
    using cost::detail::round_trip;
    std::vector<round_trip> trips;
    for (const std::int64_t bytes : {96, 352, 1120, 4192, 16480, 65632, 262240, 1048672}) {
        const std::int64_t queued = bytes > 32'768 ? bytes - 32'768 : 0;
        trips.push_back({static_cast<std::uint64_t>(bytes), nanoseconds(2 * (50'000 + bytes + queued * 40))});
    }
    CHECK(static_cast<double>(cost::detail::speed_of_long(trips)) == doctest::Approx(1e9 / 41).epsilon(1e-6));
    CHECK(cost::detail::nearest_link(trips).bandwidth > 30'000'000);
    const auto seen = cost::detail::fit_stepped_link(trips);
    CHECK(seen.round_trip_from == 0);
    CHECK(seen.link.bandwidth == cost::detail::speed_of_long(trips));
    CHECK(static_cast<double>(seen.at_once) == doctest::Approx(32'768).epsilon(0.05));
    trips.back().time = trips.front().time;
    CHECK(cost::detail::speed_of_long(trips) == cost::detail::nearest_link(trips).bandwidth);
    const std::vector<round_trip> exact{{100, nanoseconds(2 * 1100)}, {1100, nanoseconds(2 * 2100)}};
    CHECK(cost::detail::speed_of_long(exact) == 1'000'000'000);
}

TEST_CASE("a group of one rank has no links; wrong ranks and other arguments are refused") {
    CHECK(loaded(1, {})[0] == cost::measured_link{.link = {duration{}, 0}});
    CHECK_THROWS_WITH(loaded(2, {}, {.to = 2}), doctest::Contains("between two ranks of the group"));
    CHECK_THROWS_AS(simulated::run(3, {},
                                   [](simulated::endpoint& self) {
                                       group workers{self, topology::ring{}};
                                       cost::measure_loaded_link(workers, {.repetitions = self.rank() == 2 ? 3 : 4});
                                   }),
                    mismatch);
}

TEST_CASE("costs: in a simulated network computing takes no time") {
    simulated::run(3, {.latency = microseconds(5), .bandwidth = 1'000'000'000}, [](simulated::endpoint& self) {
        group workers{self, topology::ring{}};
        const cost::measured_costs found = cost::measure_costs(workers, {.dimension = 1000});
        CHECK(found.ranks == 3);
        CHECK(found.link.link == rill::network_link{microseconds(5), 1'000'000'000});
        CHECK(found.computing == cost::computing_costs{});
        CHECK(found.sums == cost::sum_costs{});
    });
}

TEST_CASE("costs: ranks that have measured nothing do not make computing free for the others") {
    const auto sharing = [](const std::vector<double>& found) {
        std::vector<double> all(found.size());
        simulated::run(static_cast<int>(found.size()), {}, [&](simulated::endpoint& self) {
            group workers{self, topology::ring{}};
            const auto rank = static_cast<std::size_t>(self.rank());
            all[rank] = cost::detail::least_sharing(workers, found[rank]);
        });
        CHECK(all == std::vector<double>(all.size(), all[0]));
        return all[0];
    };
    CHECK(sharing({2.5, 0, 1.5}) == 1.5);
    CHECK(sharing({0, 0, 0}) == 0);
}

TEST_CASE("costs: with real clocks all ranks get the same figures, those of the slowest") {
    const auto largest = [](const auto& figures) { return *std::max_element(figures.begin(), figures.end()); };
    std::vector<cost::measured_costs> all(3);
    // What an element adds to a small sum is 0 where other programs hide it.
    for (int attempt = 0; attempt < 20 && (largest(all[0].sums.dense) == 0 || largest(all[0].sums.streams) == 0);
         ++attempt) {
        in_process::run(3, [&](in_process::endpoint& self) {
            group workers{self, topology::ring{}};
            all[static_cast<std::size_t>(self.rank())] = cost::measure_costs(
                workers, {.link = {.largest_bytes = 1 << 14, .repetitions = 3}, .dimension = 1 << 14});
        });
        CHECK(all == std::vector<cost::measured_costs>(3, all[0]));
        CHECK(all[0].computing.fold > 0);
        CHECK(all[0].computing.merge > 0);
        CHECK(all[0].computing.select > 0);
        CHECK(all[0].computing.encode[0] == 0);  // raw: sent from the stream's own arrays
        CHECK(all[0].computing.encode[2] > 0);
        CHECK(all[0].computing.decode[2] > 0);
        for (std::size_t i = 0; i < cost::measured_topologies.size(); ++i) {
            CHECK(all[0].sums.small_dense[i] > 0);
            CHECK(all[0].sums.small_streams[i] > 0);
            CHECK(all[0].sums.dense[i] >= 0);
        }
    }
    CHECK(largest(all[0].sums.dense) > 0);
    CHECK(largest(all[0].sums.streams) > 0);
}

TEST_CASE("costs: small sums are the same on all ranks, though the last row of a stream is shorter") {
    in_process::run(3, [](in_process::endpoint& inner) {
        delayed net{inner};
        group workers{net, topology::ring{}};
        const auto found = cost::measure_costs(
            workers,
            {.link = {.largest_bytes = 1 << 14, .repetitions = 3}, .density = 0.3, .dimension = 10, .row_length = 4});
        CHECK(found.sums.few == 4);
    });
}
