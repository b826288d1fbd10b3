#include <rill/cost/simulate_step.hpp>
#include <rill/cost/step_model.hpp>

#include <rill/core/contract.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <utility>

using namespace rill::cost;

namespace {

/// The neural network of CodedReduce, section IV-B: a = 5e-5 s a point, aμ = 1, t_c = 0.05 s.
constexpr step_model network{.points = 49'920, .least_per_point = 5e-5, .tail_per_point = 5e-5, .message = 0.05};

}  // namespace

TEST_CASE("step_model: loads are Theorem 1's") {
    CHECK(coded_tree(12, 2, 5).load == doctest::Approx(1.0 / 6));
    CHECK(coded_tree(12, 2, 2).load == doctest::Approx(1.0 / 20));
    CHECK(coded_tree(3, 2, 1).load == doctest::Approx(4.0 / 15));
    CHECK(coded_tree(156, 1, 39).load == doctest::Approx(40.0 / 156));
    CHECK(coded_tree(5, 3, 0).load == doctest::Approx(1.0 / 155));
    CHECK(coded_tree(12, 2, 5).workers() == 156);
    CHECK_THROWS_AS(coded_tree(12, 2, 12), rill::contract_violation);
    CHECK_THROWS_AS(coded_tree(12, 2, -1), rill::contract_violation);
    CHECK_THROWS_AS(coded_tree(12, 0, 1), rill::contract_violation);
    CHECK_THROWS_AS(expected_time(network, {.width = 3, .missing = 3}), rill::contract_violation);
}

TEST_CASE("step_model: sums of reciprocals, exact and by series") {
    CHECK(harmonic(0) == 0);
    CHECK(harmonic(4) == doctest::Approx(25.0 / 12));
    CHECK(harmonic(1001) == doctest::Approx(harmonic(1000) + 1.0 / 1001).epsilon(1e-13));
}

TEST_CASE("step_model: without message times a star takes the mean of the order statistic") {
    step_model quiet = network;
    quiet.message = 0;
    CHECK(expected_time(quiet, coded_tree(12, 1, 5)) ==
          doctest::Approx(49'920 / 2.0 * 5e-5 * (1 + harmonic(12) - harmonic(5))));
    CHECK(expected_time(quiet, master_worker(156)) == doctest::Approx(compute_time(quiet, 1.0 / 156, 156, 156)));
}

TEST_CASE("step_model: a tree that waits for all takes as long as its slowest worker") {
    step_model quiet = network;
    quiet.message = 0;
    const gather_plan plan = coded_tree(5, 3, 0);
    CHECK(expected_time(quiet, plan) == doctest::Approx(compute_time(quiet, plan.load, 155, 155)).epsilon(1e-3));
}

TEST_CASE("step_model: Theorem 2 on the paper's network") {
    const gather_plan plan = coded_tree(12, 2, 5);
    const double simulated = simulate_step(network, plan).mean;
    CHECK(upper_bound(network, plan) == doctest::Approx(8320 * 5e-5 * (1 + std::log(12 / 5.0)) + 24 * 0.05));
    CHECK(simulated < upper_bound(network, plan));
    // The o(n) terms of the lower bound matter at n = 12: without them it lies above the mean.
    CHECK(lower_trend(network, plan) == doctest::Approx(1.180).epsilon(1e-3));
    CHECK(simulated == doctest::Approx(1.135).epsilon(0.005));
    CHECK(std::isinf(upper_bound(network, coded_tree(12, 2, 0))));
}

TEST_CASE("step_model: the formula is near the simulated mean") {
    for (const double message : {0.0, 0.001, 0.05, 0.5})
        for (const double tail : {0.0, 5e-5, 5e-4})
            for (const auto& [width, depth] : {std::pair{60, 1}, {12, 2}, {4, 3}})
                for (int s = 0; s < width; s += 1 + width / 4)
                    for (const bool sends_model : {false, true}) {
                        const step_model model{.points = 49'920,
                                               .least_per_point = 5e-5,
                                               .tail_per_point = tail,
                                               .message = message,
                                               .sends_model = sends_model};
                        const gather_plan plan = coded_tree(width, depth, s);
                        const sampled_time simulated = simulate_step(model, plan, {.steps = 100});
                        CAPTURE(width);
                        CAPTURE(s);
                        CAPTURE(tail);
                        CAPTURE(message);
                        CAPTURE(sends_model);
                        CHECK(std::abs(expected_time(model, plan) - simulated.mean) <
                              0.15 * simulated.mean + 3 * simulated.error);
                    }
}

TEST_CASE("step_model: many children, and the probability that enough of them are done") {
    CHECK(detail::at_least(2000, 1900, 0.5) < 1e-9);
    CHECK(detail::at_least(2000, 900, 0.5) > 0.999);
    CHECK(detail::at_least(2, 1, 0.5) == doctest::Approx(0.75));
    CHECK(detail::at_least(2, 0, 0) == 1);
    CHECK(detail::at_least(2, 1, 0) == 0);
    CHECK(detail::at_least(2, 2, 1) == 1);
}
