#include <rill/cost/simulate_step.hpp>

#include <rill/core/contract.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace rill::cost;

namespace {
constexpr step_model network{.points = 49'920, .least_per_point = 5e-5, .tail_per_point = 5e-5, .message = 0.05};
constexpr step_model fixed{.points = 100, .least_per_point = 0.01, .tail_per_point = 0, .message = 0.5, .latency = 2};
}  // namespace

TEST_CASE("simulate_step: without random times the result is exact") {
    // 4 workers compute for 0.25 s; their gradients arrive at 2.25 s and are received one by one.
    CHECK(simulate_step(fixed, master_worker(4)).mean == doctest::Approx(0.25 + 2 + 4 * 0.5));
    CHECK(simulate_step(fixed, master_worker(4)).error == doctest::Approx(0));
    CHECK(simulate_step(fixed, ignoring_slowest(4, 3)).mean == doctest::Approx(0.25 + 2 + 0.5));
    // Each of three sub-trees receives two gradients; the master receives two of their three sums.
    const gather_plan tree = coded_tree(3, 2, 1);
    CHECK(simulate_step(fixed, tree).mean == doctest::Approx(4.0 / 15 + 2 * (2 + 2 * 0.5)));
    CHECK(simulate_ring_step(fixed, 4).mean == doctest::Approx(0.25 + 6 * (0.125 + 2)));
    CHECK(expected_time(fixed, tree) == doctest::Approx(simulate_step(fixed, tree).mean));
    CHECK(expected_ring_time(fixed, 4) == doctest::Approx(simulate_ring_step(fixed, 4).mean));
}

TEST_CASE("simulate_step: the speed-ups of CodedReduce's neural network") {
    const double coded = simulate_step(network, coded_tree(12, 2, 5)).mean;
    CHECK(simulate_step(network, master_worker(156)).mean / coded == doctest::Approx(6.9).epsilon(0.01));
    CHECK(simulate_step(network, coded_tree(156, 1, 65)).mean / coded == doctest::Approx(5.0).epsilon(0.02));
    CHECK(simulate_step(network, ignoring_slowest(156, 65)).mean / coded == doctest::Approx(4.0).epsilon(0.01));
    // A ring that uses the full bandwidth of its links is the fastest; the paper's ring was slower than the tree.
    CHECK(coded / simulate_ring_step(network, 156).mean == doctest::Approx(5.5).epsilon(0.02));
}

TEST_CASE("simulate_step: is a function of its seed, and its error bounds the difference to another seed") {
    const sampled_time one = simulate_step(network, coded_tree(12, 2, 1));
    const sampled_time two = simulate_step(network, coded_tree(12, 2, 1), {.seed = 2});
    CHECK(one == simulate_step(network, coded_tree(12, 2, 1)));
    CHECK(one.mean != two.mean);
    CHECK(std::abs(one.mean - two.mean) < 4 * (one.error + two.error));
    CHECK_THROWS_AS(simulate_step(network, master_worker(3), {.steps = 1}), rill::contract_violation);
    CHECK_THROWS_AS(simulate_step(network, {.width = 3, .missing = 3}), rill::contract_violation);
}
