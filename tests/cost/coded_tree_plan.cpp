#include <rill/cost/coded_tree_plan.hpp>

#include <rill/core/contract.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

using namespace rill::cost;

namespace {

constexpr step_model network{.points = 49'920, .least_per_point = 5e-5, .tail_per_point = 5e-5, .message = 0.05};

/// The least simulated time of any tolerance, at this depth.
double least_simulated(const step_model& model, int width, int depth) {
    double least = simulate_step(model, coded_tree(width, depth, 1)).mean;
    for (int s = 2; s < width; ++s) least = std::min(least, simulate_step(model, coded_tree(width, depth, s)).mean);
    return least;
}

}  // namespace

TEST_CASE("coded_tree_plan: tolerances chosen by formula are nearly the best of the simulation") {
    for (const double message : {0.0, 0.01, 0.2}) {
        step_model model = network;
        model.message = message;
        model.tail_per_point = 5e-4;
        for (const planned_step& step : plan_coded_tree(model, 39).coded)
            CHECK(step.simulated.mean <= 1.1 * least_simulated(model, step.plan.width, step.plan.depth));
    }
}

TEST_CASE("coded_tree_plan: for each depth, the largest tree that the workers fill") {
    const coded_tree_plan plan = plan_coded_tree(network, 156);
    CHECK(plan.coded.size() == 6);
    CHECK(std::is_sorted(plan.coded.begin(), plan.coded.end(), detail::is_faster));
    for (const planned_step& step : plan.coded) {
        CHECK(step.plan.workers() <= 156);
        CHECK(gather_plan{.width = step.plan.width + 1, .depth = step.plan.depth}.workers() > 156);
        CHECK(step.plan.missing >= 1);
    }
}

TEST_CASE("coded_tree_plan: the paper's network, where a ring is faster") {
    const coded_tree_plan plan = plan_coded_tree(network, 156);
    CHECK_FALSE(plan.coding_pays());
    CHECK(plan.best_uncoded().name == "ring");
    CHECK(plan.reason.find("Coding does not pay: ring, 206 ms a step") == 0);
    CHECK(plan.reason.find("It beats the ring where a message has a latency of") != std::string::npos);
    // The plan names a latency at which tree and ring take equally long.
    step_model slow = network;
    slow.latency = plan.pays_from_latency;
    const gather_plan& best = plan.best_coded().plan;
    CHECK(simulate_step(slow, best).mean == doctest::Approx(simulate_ring_step(slow, 156).mean).epsilon(0.001));
}

TEST_CASE("coded_tree_plan: with a long tail coding pays, from the tail that the plan names") {
    const coded_tree_plan before = plan_coded_tree(network, 156);
    REQUIRE(before.pays_from_tail > 1);
    step_model longer = network;
    longer.tail_per_point *= 2 * before.pays_from_tail;
    longer.message = 0.01;
    const coded_tree_plan after = plan_coded_tree(longer, 156);
    CHECK(after.coding_pays());
    CHECK(after.pays_from_tail < 1);
    CHECK(after.reason.find("Coding pays: ") == 0);
    CHECK(after.ignoring.simulated.mean < after.best_coded().simulated.mean);
}

TEST_CASE("coded_tree_plan: without a tail coding never pays") {
    const coded_tree_plan plan = plan_coded_tree({.points = 1, .least_per_point = 1, .message = 0.001}, 14);
    CHECK_FALSE(plan.coding_pays());
    CHECK(plan.pays_from_tail == 0);
    CHECK(plan.reason.find("A longer tail does not change that.") != std::string::npos);
    CHECK_THROWS_AS(plan_coded_tree(network, 1), rill::contract_violation);
    CHECK_THROWS_AS(plan_coded_tree({.points = 0}, 3), rill::contract_violation);
    CHECK_THROWS_AS(plan_coded_tree({.points = 10}, 3), rill::contract_violation);  // nothing takes time
    CHECK_THROWS_AS(plan_coded_tree({.points = 10, .message = HUGE_VAL}, 3), rill::contract_violation);
}
