// A step whose learning rate is infinite.
#pragma once

#include <rill/core/contract.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/strategy.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace jobs {

/// Infinite at step 0.
inline constexpr rill::train::inverse_time infinite{.c1 = 2, .c2 = 0};

/// Checks that all ranks refuse step 0 before they compute. `message`: what they say. `made`: a gradient of three.
template <class Plan, class Gradient>
void check_refused_rate(const Plan& plan, const char* message, const Gradient& made) {
    rill::simulated::run(3, {}, [&](auto& net) {
        const std::vector<rill::layer> layers{{"w", {0, 3}}};
        auto bound = plan.bind(net, layers);
        std::vector<float> parameters{1, 2, 3};
        Gradient gradient = made;
        bool has_computed = false;
        const auto compute = [&](const auto&...) {
            has_computed = true;
            return 0.0;
        };
        CHECK_THROWS_WITH_AS(bound.step(parameters, gradient, 0, compute), message, rill::contract_violation);
        CHECK_FALSE(has_computed);
    });
}

/// Checks that all ranks refuse a step at the rate `infinite`, which is that of `plan`, and at one that is infinite as
/// a float.
template <class Plan, class Gradient = std::vector<float>>
void check_infinite_rate(const Plan& plan, const Gradient& made = Gradient(3)) {
    check_refused_rate(plan, "rill: train: the rate of step 0 is inf; it must be finite", made);
    Plan large = plan;
    large.rate = {.c1 = 1e39, .c2 = 1};
    check_refused_rate(
        large, "rill: train: the rate of step 0 is 1e+39; it must be finite in the type of the parameters", made);
}

}  // namespace jobs
