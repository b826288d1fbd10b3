#include <rill/train/compressed_bsp.hpp>

#include "infinite_rate.hpp"
#include "jobs.hpp"

#include <rill/compress/keep_all.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace rill;
using namespace jobs;

namespace {
const train::compressed_bsp one_of_three{topology::split_allgather{},
                                         compress::error_feedback{compress::top_k{.count = 1}}, train::sgd{},
                                         train::step_decay{.initial = 1, .factor = 0.5}};
using vectors = std::vector<std::vector<float>>;

/// A step along a gradient that is given.
template <class Bound>
train::step_record step(Bound& bound, std::vector<float>& parameters, std::vector<float>& gradient,
                        const std::vector<float>& computed, std::uint64_t number = 0) {
    return bound.step(std::span(parameters), std::span(gradient), number, [&] {
        gradient = computed;
        return 0.0;
    });
}
}  // namespace

TEST_CASE("compressed_bsp: a codec that leaves nothing out gives the result of dense exchange") {
    const train::compressed_bsp everything{topology::ring{}, compress::keep_all{}, with_momentum,
                                           train::constant_rate{0.1}};
    const train::bsp dense{topology::ring{}, with_momentum, train::constant_rate{0.1}};
    vectors results(2);
    const auto trained_with = [&](const auto& plan, std::vector<float>& result) {
        in_process::run(3, [&](auto& net) {
            auto trainer = make_trainer(net, plan);
            while (trainer.step_number() < 10) trainer.step();
            if (net.rank() == 0) result = copy_of_parameters(trainer);
        });
    };
    trained_with(everything, results[0]);
    trained_with(dense, results[1]);
    for (std::size_t i = 0; i < results[0].size(); ++i)
        CHECK(results[0][i] == doctest::Approx(results[1][i]).epsilon(1e-4));
}

TEST_CASE("compressed_bsp: what is left out is applied later, at the learning rate of its own step") {
    vectors moved(2), residuals(2);
    on_transports(2, [&](auto& net) {
        auto bound = one_of_three.bind(net, three);
        const auto rank = static_cast<std::size_t>(net.rank());
        std::vector<float> parameters(3), gradient(3);
        step(bound, parameters, gradient, {3, 2, 1});
        CHECK(parameters == std::vector<float>{-3, 0, 0});
        step(bound, parameters, gradient, {0, 0, 2}, 1);  // rate 1/2
        moved[rank] = parameters;
        residuals[rank].assign(bound.codec().residual().begin(), bound.codec().residual().end());
    });
    // The residual (0, 2, 1) and half of (0, 0, 2) make (0, 2, 2): of equal entries the lower coordinate is sent first.
    CHECK(moved == vectors(2, {-3, -2, 0}));
    CHECK(residuals == vectors(2, {0, 0, 2}));
}

TEST_CASE("compressed_bsp: the other ranks keep their contributions to a skipped step") {
    vectors moved(2), residuals(2);
    on_transports(2, [&](auto& net) {
        auto bound = one_of_three.bind(net, three);
        const auto rank = static_cast<std::size_t>(net.rank());
        std::vector<float> parameters(3), gradient(3);
        step(bound, parameters, gradient, {3, 2, 1});
        const float first = net.rank() == 0 ? std::numeric_limits<float>::quiet_NaN() : 4;
        const train::step_record done = step(bound, parameters, gradient, {first, 4, 4});
        CHECK(done.exchange.contributors == 1);
        CHECK(done.invalid == std::vector<train::invalid_gradient>{{0, 0}});
        moved[rank] = parameters;
        residuals[rank].assign(bound.codec().residual().begin(), bound.codec().residual().end());
    });
    CHECK(moved == vectors(2, {-3, 0, 0}));
    CHECK(residuals == vectors{{0, 2, 1}, {4, 6, 5}});
}

TEST_CASE("compressed_bsp: all ranks refuse an infinite rate before they compute") {
    check_infinite_rate(train::compressed_bsp{topology::ring{}, compress::keep_all{}, train::sgd{}, infinite});
}
