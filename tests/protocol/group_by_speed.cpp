#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/group_by_speed.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using groups = std::vector<std::vector<rill::rank_t>>;
using rill::simulated::endpoint;

/// Rank r takes `ms[r]` for a step, one ms more and one less by turns.
rill::simulated::network speeds(std::vector<int> ms) {
    return {.computing = [ms](rill::rank_t rank, std::uint64_t step, double) {
        return rill::milliseconds(ms[static_cast<std::size_t>(rank)] + (step % 2 == 0 ? 1 : -1));
    }};
}

groups seen_by_all(const std::vector<int>& ms, const rill::speed_options& options) {
    groups seen(ms.size());
    rill::simulated::run(static_cast<int>(ms.size()), speeds(ms), [&](endpoint& net) {
        seen[static_cast<std::size_t>(net.rank())] = rill::group_by_speed(
                                                         net, [&] { net.compute(1); }, options)
                                                         .members;
    });
    return seen;
}

}  // namespace

TEST_CASE("group_by_speed: a group is split at its mean while it is spread wider than the bound") {
    const std::vector<double> times{10, 30, 11, 31, 100};
    CHECK(rill::split_by_speed(times, 100) == groups{{0, 1, 2, 3, 4}});
    // The mean is 36.4: rank 4 leaves. Of the others it is 20.5, and their spread 21: they are split once more.
    CHECK(rill::split_by_speed(times, 1) == groups{{0, 2}, {1, 3}, {4}});
    // 21 is at most 1.1 times 20.5.
    CHECK(rill::split_by_speed(times, 1.1) == groups{{0, 1, 2, 3}, {4}});
    CHECK(rill::split_by_speed(times, 0) == groups{{0}, {2}, {1}, {3}, {4}});
}

TEST_CASE("group_by_speed: equal times are one group, whatever the bound") {
    CHECK(rill::split_by_speed(std::vector<double>(3, 0.1), 0) == groups{{0, 1, 2}});
    CHECK(rill::split_by_speed(std::vector<double>{5}, 0) == groups{{0}});
    CHECK(rill::split_by_speed(std::vector<double>{}, 1).empty());
    const double next = std::nextafter(0.1, 1.0);
    CHECK(rill::split_by_speed(std::vector<double>{next, 0.1, next}, 0).size() <= 2);
    // A mean that is rounded to less than the shortest.
    constexpr double ulp = std::numeric_limits<double>::epsilon();
    std::vector<double> alike(15, 1 + 3 * ulp);
    alike[14] = 1 + 4 * ulp;
    const auto parts = rill::split_by_speed(alike, 0);
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].size() == 14);
    CHECK(parts[1] == std::vector<rill::rank_t>{14});
}

TEST_CASE("group_by_speed: every rank gets the view of the ranks that are as fast as it is") {
    const groups seen = seen_by_all({10, 40, 10, 40, 11}, {.spread = 0.5, .steps = 4});
    CHECK(seen == groups{{0, 2, 4}, {1, 3}, {0, 2, 4}, {1, 3}, {0, 2, 4}});
    CHECK(seen_by_all({10, 40, 10}, {.spread = 2, .steps = 4}) == groups(3, {0, 1, 2}));
    CHECK(seen_by_all({7}, {.steps = 1}) == groups{{0}});
}

TEST_CASE("group_by_speed: a subgroup of the view is the transport of its ranks") {
    rill::simulated::run(4, speeds({10, 90, 10, 90}), [](endpoint& net) {
        rill::subgroup alike{net, rill::group_by_speed(net, [&] { net.compute(1); })};
        CHECK(alike.size() == 2);
        CHECK(alike.rank() == net.rank() / 2);
    });
}

TEST_CASE("group_by_speed: refuses options out of range and ranks that differ in them") {
    rill::simulated::run(1, {}, [](endpoint& net) {
        int steps = 0;
        const auto with = [&](const rill::speed_options& options) {
            rill::group_by_speed(
                net, [&] { ++steps; }, options);
        };
        CHECK_THROWS_WITH_AS(with({.spread = -1}), doctest::Contains("group_by_speed: spread is -1"),
                             rill::contract_violation);
        CHECK_THROWS_AS(with({.spread = std::numeric_limits<double>::quiet_NaN()}), rill::contract_violation);
        CHECK_THROWS_WITH_AS(with({.steps = 0}), doctest::Contains("group_by_speed: steps is 0"),
                             rill::contract_violation);
        CHECK_THROWS_WITH_AS(with({.timeout = rill::seconds(0)}), doctest::Contains("group_by_speed: timeout is 0"),
                             rill::contract_violation);
        CHECK(steps == 0);
    });
    int refused = 0;
    rill::simulated::run(3, {}, [&](endpoint& net) {
        try {
            rill::group_by_speed(net, [] {}, {.spread = net.rank() == 1 ? 2.0 : 1.0});
        } catch (const rill::mismatch& thrown) {
            CHECK(std::string(thrown.what()).find("spread") != std::string::npos);
            ++refused;
        }
    });
    CHECK(refused == 3);
}
