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

/// Checks that all ranks refuse a step at the rate `infinite` before they compute. `made`: a gradient of three.
template <class Plan, class Gradient = std::vector<float>>
void check_infinite_rate(const Plan& plan, const Gradient& made = Gradient(3)) {
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
        CHECK_THROWS_WITH_AS(bound.step(parameters, gradient, 0, compute),
                             "rill: train: the rate of step 0 is inf; it must be finite", rill::contract_violation);
        CHECK_FALSE(has_computed);
    });
}

}  // namespace jobs
