#include <rill/cost/coded_tree_plan.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/gradient_code/default_code.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace rill::cost;

namespace {

constexpr step_model network{.points = 49'920, .least_per_point = 5e-5, .tail_per_point = 5e-5, .message = 0.05};

/// The least simulated time of any tolerance, at this depth.
double least_simulated(const step_model& model, int width, int depth) {
    double least = simulate_step(model, coded_tree(width, depth, 1)).mean;
    for (int s = 2; s < width; ++s) least = std::min(least, simulate_step(model, coded_tree(width, depth, s)).mean);
    return least;
}

constexpr int steps = 20;
constexpr std::size_t entries = 2500;

/// Cards that send or receive `entries` floats in `model.message`, and ranks that compute as `model` says.
rill::simulated::network network_of(const step_model& model) {
    const auto ns = [](double seconds) { return rill::nanoseconds(std::llround(seconds * 1e9)); };
    const auto card = rill::network_card::full_duplex(static_cast<std::uint64_t>(4 * entries / model.message));
    return {.latency = ns(model.latency),
            .bandwidth = 0,
            .cards = [card](rill::rank_t) { return card; },
            .computing = rill::shifted_exponential{ns(model.points * model.least_per_point),
                                                   ns(model.points * model.tail_per_point), 1}};
}

/// The seconds of a step of `rill::coded_reduce`, which the planner prints, in a simulated network.
double measured_step(const step_model& model, const gather_plan& plan) {
    const rill::topology::regular_tree tree{plan.width, plan.depth};
    rill::duration elapsed{};
    rill::simulated::run(tree.size(), network_of(model), [&](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::star{}, {.timeout = rill::seconds(10'000)}};
        rill::coded_reduce rounds{
            workers, tree,
            rill::gradient_code::default_code(plan.width, plan.missing, rill::element_type::float32).code};
        std::vector<float> parameters(entries), gradient(entries);
        const rill::time_point begin = net.now();
        for (int step = 0; rounds.next(parameters); ++step) {
            if (!rounds.is_root()) rill::compute(net, plan.load);
            rounds.reduce(gradient, gradient);
            if (!rounds.is_root() || step + 1 < steps) continue;
            elapsed = net.now() - begin;
            rounds.end();
        }
    });
    return elapsed.seconds() / steps;
}

double measured_ring_step(const step_model& model, int ranks) {
    rill::duration elapsed{};
    rill::simulated::run(ranks, network_of(model), [&](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10'000)}};
        std::vector<float> gradient(entries);
        const rill::time_point begin = net.now();
        for (int step = 0; step < steps; ++step) {
            rill::compute(net, 1.0 / ranks);
            rill::all_reduce(workers, gradient, gradient);
        }
        elapsed = std::max(elapsed, net.now() - begin);
    });
    return elapsed.seconds() / steps;
}

}  // namespace

TEST_CASE("coded_tree_plan: without a tail, each tree and the ring take as long as in the simulated network") {
    for (const double compute : {0.0, 0.5, 20.0})
        for (const double latency : {0.0, 2.0}) {
            const step_model model{
                .points = 12, .least_per_point = compute, .message = 0.8, .latency = latency, .sends_model = true};
            CAPTURE(compute);
            CAPTURE(latency);
            for (const gather_plan& plan :
                 {coded_tree(12, 1, 11), coded_tree(12, 1, 5), coded_tree(12, 1, 0), coded_tree(3, 2, 2),
                  coded_tree(3, 2, 1), coded_tree(3, 2, 0), coded_tree(2, 3, 1)}) {
                CAPTURE(plan.width);
                CAPTURE(plan.missing);
                const double measured = measured_step(model, plan);
                CHECK(simulate_step(model, plan).mean == doctest::Approx(measured).epsilon(0.1));
                CHECK(expected_time(model, plan) == doctest::Approx(measured).epsilon(0.1));
            }
            CHECK(expected_ring_time(model, 12) == doctest::Approx(measured_ring_step(model, 12)).epsilon(0.1));
        }
}

TEST_CASE("coded_tree_plan: what it says of coding holds in the simulated network") {
    int paying = 0;
    for (const double message : {0.8, 0.05, 0.001})
        for (const double latency : {50e-6, 0.5}) {
            const step_model model{
                .points = 1.44, .least_per_point = 0.5, .tail_per_point = 0.5, .message = message, .latency = latency};
            const coded_tree_plan plan = plan_coded_tree(model, 12);
            const double coded = measured_step(model, plan.best_coded().plan), ring = measured_ring_step(model, 12);
            CAPTURE(message);
            CAPTURE(latency);
            CAPTURE(plan.reason);
            const auto is_ring = [](const planned_step& each) { return each.name == "ring"; };
            const auto planned_ring = std::find_if(plan.uncoded.begin(), plan.uncoded.end(), is_ring);
            CHECK((plan.best_coded().simulated.mean < planned_ring->simulated.mean) == (coded < ring));
            paying += coded < ring ? 1 : 0;
        }
    CHECK(paying > 0);
    CHECK(paying < 6);
}

TEST_CASE("coded_tree_plan: tolerances chosen by formula are nearly the best of the simulation") {
    for (const double message : {0.0, 0.01, 0.2}) {
        step_model model = network;
        model.message = message;
        model.tail_per_point = 5e-4;
        model.sends_model = true;
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
    slow.sends_model = true;
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
