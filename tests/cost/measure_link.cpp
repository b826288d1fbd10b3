#include <rill/cost/measure_link.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/cost/predict.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace rill;

/// What each rank of a simulated network measures.
std::vector<rill::network_link> measured(int ranks, const simulated::network& net, const cost::link_probe& probe = {}) {
    std::vector<rill::network_link> all(static_cast<std::size_t>(ranks));
    simulated::run(ranks, net, [&](simulated::endpoint& self) {
        group workers{self, topology::ring{}};
        all[static_cast<std::size_t>(self.rank())] = cost::measure_link(workers, probe);
    });
    return all;
}

}  // namespace

TEST_CASE("in a simulated network the measured link is exactly the given one, on all ranks") {
    for (const std::uint64_t bandwidth : {std::uint64_t{0}, std::uint64_t{1'250'000'000}, std::uint64_t{125'000'000},
                                          std::uint64_t{37'500'000}, std::uint64_t{1'000'000}})
        for (const duration latency : {nanoseconds(0), nanoseconds(777), microseconds(50)}) {
            const rill::network_link given{latency, bandwidth};
            CHECK(measured(3, {.links = uniform_links{given}}) == std::vector<rill::network_link>(3, given));
        }
}

TEST_CASE("any bandwidth is measured to the precision of nanoseconds") {
    const rill::network_link found = measured(2, {.latency = nanoseconds(10), .bandwidth = 123'456'789})[0];
    CHECK(found.latency == nanoseconds(10));
    CHECK(static_cast<double>(found.bandwidth) == doctest::Approx(123'456'789).epsilon(1e-7));
}

TEST_CASE("links between chosen ranks are measured one by one, and describe the network again") {
    const simulated::network racks{.links = grouped_links{.group = 2,
                                                          .inside = {microseconds(1), 8'000'000'000},
                                                          .between = {microseconds(30), 250'000'000}}};
    duration elapsed{}, predicted{};
    simulated::run(6, racks, [&](simulated::endpoint& self) {
        group workers{self, topology::ring{}};
        const simulated::network same{.links = grouped_links{.group = 2,
                                                             .inside = cost::measure_link(workers, {.to = 1}),
                                                             .between = cost::measure_link(workers)}};
        predicted = cost::predict_all_reduce(topology::ring{}, 6, cost::dense_messages<float>(5000), same).elapsed;
        self.sleep_until({seconds(1).ns});
        std::vector<float> data(5000, 1.0F);
        all_reduce(workers, data, data);
        elapsed = std::max(elapsed, self.now() - time_point{seconds(1).ns});
    });
    CHECK(elapsed == predicted);
}

TEST_CASE("with real clocks medians give a link, which is the same on all ranks") {
    std::vector<rill::network_link> all(4);
    in_process::run(4, [&](in_process::endpoint& self) {
        group workers{self, topology::ring{}};
        all[static_cast<std::size_t>(self.rank())] =
            cost::measure_link(workers, {.from = 2, .to = 1, .largest_bytes = 1 << 16, .repetitions = 3});
    });
    CHECK(all == std::vector<rill::network_link>(4, all[0]));
    CHECK(all[0].latency >= duration{});
}

TEST_CASE("a group of one rank has no links; a rank outside the group is refused") {
    CHECK(measured(1, {})[0] == rill::network_link{duration{}, 0});
    CHECK_THROWS_WITH(measured(2, {}, {.to = 2}), doctest::Contains("between two ranks of the group"));
}

TEST_CASE("ranks that probe with other arguments are named") {
    CHECK_THROWS_AS(simulated::run(3, {},
                                   [](simulated::endpoint& self) {
                                       group workers{self, topology::ring{}};
                                       cost::measure_link(workers, {.repetitions = self.rank() == 2 ? 3 : 4});
                                   }),
                    mismatch);
}

TEST_CASE("the fit: on given times, with noise, and with negligible latency") {
    using cost::detail::round_trip;
    const auto noisy = cost::detail::fit_link(std::vector<round_trip>{
        {100, nanoseconds(2 * 10'150)}, {10'000, nanoseconds(2 * 19'900)}, {1'000'000, nanoseconds(2 * 1'012'000)}});
    CHECK(static_cast<double>(noisy.latency.ns) == doctest::Approx(10'000).epsilon(0.01));
    CHECK(static_cast<double>(noisy.bandwidth) == doctest::Approx(1e9).epsilon(0.01));
    const auto late = cost::detail::fit_link(std::vector<round_trip>{{100, nanoseconds(2 * 10'100)},
                                                                     {10'000, nanoseconds(2 * 20'000)},
                                                                     {250'000, nanoseconds(2 * 285'000)},  // 10 % late
                                                                     {1'000'000, nanoseconds(2 * 1'010'000)}});
    CHECK(static_cast<double>(late.latency.ns) == doctest::Approx(10'000).epsilon(0.02));
    const auto steep = cost::detail::fit_link(
        std::vector<round_trip>{{100, nanoseconds(2)}, {10'000, nanoseconds(20'900)}, {100'000, nanoseconds(230'000)}});
    CHECK(steep.latency >= duration{});
    CHECK(steep.bandwidth > 0);
    const auto flat =
        cost::detail::fit_link(std::vector<round_trip>{{100, nanoseconds(201)}, {10'000, nanoseconds(190)}});
    CHECK(flat.bandwidth == 0);
}
