#include <rill/train/bsp.hpp>

#include "infinite_rate.hpp"
#include "jobs.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace rill;
using namespace jobs;

TEST_CASE("bsp: one rank does what its optimizer does, bit for bit") {
    std::vector<float> trained;
    in_process::run(1, [&](auto& net) {
        auto trainer = make_trainer(net, dense_plan);
        while (trainer.step_number() < 10) trainer.step();
        trained = copy_of_parameters(trainer);
    });
    train::perceptron<float> model({12, 9, 3});
    std::vector<float> parameters(model.dimension()), gradient(model.dimension());
    model.initialise(parameters, {3});
    auto optimizer = with_momentum.bind(model.dimension());
    train::minibatches batches{data(), {.batch = 8, .key = {2}}};
    for (std::uint64_t step = 0; step < 10; ++step) {
        model.gradient(parameters, batches.next(), gradient);
        optimizer.step(parameters, gradient, rate.rate(step));
    }
    CHECK(trained == parameters);
}

TEST_CASE("bsp: follows the mean of clipped gradients at the learning rate of the step") {
    const train::bsp plan{topology::ring{}, train::sgd{}, train::step_decay{.initial = 0.5, .factor = 0.5},
                          train::clip_value{.most = 2}};
    std::vector<std::vector<float>> moved(2);
    on_transports(2, [&](auto& net) {
        auto bound = plan.bind(net, three);
        std::vector<float> parameters{10, 10, 10}, gradient(3);
        const train::step_record done = bound.step(std::span(parameters), std::span(gradient), 1, [&] {
            gradient = {1, 4, net.rank() == 0 ? 0.0F : -9.0F};
            return 0.5;
        });
        CHECK(done.step == 1);
        CHECK(done.loss == 0.5);
        moved[static_cast<std::size_t>(net.rank())] = parameters;
    });
    CHECK(moved == std::vector<std::vector<float>>(2, {9.75F, 9.5F, 10.25F}));
}

TEST_CASE("bsp: all ranks refuse an infinite rate before they compute") {
    check_infinite_rate(train::bsp{topology::ring{}, train::sgd{}, infinite});
}
