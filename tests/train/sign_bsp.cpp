#include <rill/train/sign_bsp.hpp>

#include <rill/topology/split_allgather.hpp>

#include "infinite_rate.hpp"
#include "jobs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace rill;
using namespace jobs;

TEST_CASE("sign_bsp: every parameter moves by the rate, as most ranks vote") {
    const train::sign_bsp plan{topology::ring{}, train::sgd{}, train::step_decay{.initial = 0.5, .factor = 0.5}};
    std::vector<std::vector<float>> moved(3);
    on_transports(3, [&](auto& net) {
        auto bound = plan.bind(net, three);
        std::vector<float> parameters{10, 10, 10}, gradient(3);
        const train::step_record done = bound.step(std::span(parameters), std::span(gradient), 1, [&] {
            gradient = {net.rank() == 0 ? -1e30F : 0.001F, -2, 0};
            return 0.5;
        });
        CHECK(done.exchange.contributors == 3);
        moved[static_cast<std::size_t>(net.rank())] = parameters;
    });
    CHECK(moved == std::vector<std::vector<float>>(3, {9.75F, 10.25F, 9.75F}));
}

TEST_CASE("sign_bsp: a gradient that is not finite skips the step, and says where") {
    const train::sign_bsp plan{topology::split_allgather{}, train::sgd{}, train::constant_rate{0.1}};
    on_transports(3, [&](auto& net) {
        auto bound = plan.bind(net, three);
        std::vector<float> parameters{1, 2, 3}, gradient(3);
        const train::step_record done = bound.step(std::span(parameters), std::span(gradient), 0, [&] {
            gradient = {1, 1, net.rank() == 1 ? NAN : 1.0F};
            return 0.5;
        });
        CHECK(done.invalid == std::vector<train::invalid_gradient>{{1, 2}});
        CHECK(parameters == std::vector<float>{1, 2, 3});
    });
}

TEST_CASE("sign_bsp: all ranks refuse an infinite rate before they compute") {
    check_infinite_rate(train::sign_bsp{topology::ring{}, train::sgd{}, infinite});
}
