#include <rill/train/adam.hpp>

#include "../support/scratch.hpp"
#include "jobs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::train;

TEST_CASE("adam: follows its formulas") {
    const std::vector<double> slope{0.5, -1.0, 2.0};
    std::vector<double> w{1, 2, 3}, expected = w, m(3), v(3);
    auto optimizer = adam{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3}.bind<double>(3);
    for (int t = 1; t <= 6; ++t) {
        std::vector<double> gradient = slope;
        for (double& g : gradient) g *= t % 3 - 1.5;
        optimizer.step(w, gradient, 0.1);
        for (std::size_t i = 0; i < 3; ++i) {
            m[i] = 0.8 * m[i] + 0.2 * gradient[i];
            v[i] = 0.95 * v[i] + 0.05 * gradient[i] * gradient[i];
            const double mean = m[i] / (1 - std::pow(0.8, t)), square = v[i] / (1 - std::pow(0.95, t));
            expected[i] -= 0.1 * mean / (std::sqrt(square) + 1e-3);
        }
    }
    for (std::size_t i = 0; i < 3; ++i) CHECK(w[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("adam: the first step is as long as the rate, whatever the gradient") {
    std::vector<float> w{0, 0};
    adam{}.bind(2).step(w, std::vector<float>{1e-3F, -1e3F}, 0.25);
    CHECK(w[0] == doctest::Approx(-0.25).epsilon(1e-4));
    CHECK(w[1] == doctest::Approx(0.25).epsilon(1e-4));
}

TEST_CASE("adam: wrong options are named, wrong sizes break the contract") {
    CHECK(has(message_of<contract_violation>([] { adam{.beta1 = 1}.bind(1); }),
              "rill: train::adam: beta1 is 1; it must be in [0, 1)"));
    CHECK(has(message_of<contract_violation>([] { adam{.beta2 = -0.1}.bind(1); }), "train::adam: beta2 is -0.1"));
    CHECK(has(message_of<contract_violation>([] { adam{.epsilon = 0}.bind(1); }), "train::adam: epsilon is 0"));
    CHECK(has(message_of<contract_violation>([] { adam{.epsilon = 1e-60}.bind<float>(1); }), "epsilon is 1e-60"));
    CHECK_NOTHROW(adam{.epsilon = 1e-60}.bind<double>(1));
    CHECK(has(message_of<contract_violation>([] { adam{.epsilon = 1e60}.bind<float>(1); }), "epsilon is 1e+60"));
    for (const adam& odd : {adam{.beta1 = 0.99999999999}, adam{.beta2 = 0.99999999999}}) {  // 1 as a float
        CHECK_THROWS_AS(odd.bind<float>(1), contract_violation);
        CHECK_NOTHROW(odd.bind<double>(1));
    }
    std::vector<float> w(3), g(2);
    auto optimizer = adam{}.bind(3);
    CHECK_THROWS_AS(optimizer.step(w, g, 1), contract_violation);
}

TEST_CASE("adam: a training goes on from a checkpoint bit for bit") {
    const scratch_directory directory;
    const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
    const bsp plan{topology::ring{}, adam{}, constant_rate{0.01}};
    std::vector<std::vector<float>> through(2), resumed(2);
    in_process::run(2, [&](auto& net) {
        auto trainer = jobs::make_trainer(net, plan);
        while (trainer.step_number() < 10) {
            if (trainer.step_number() == 5) {
                checkpoint::writer out;
                trainer.save(out, "");
                out.save(path(net.rank()));
            }
            trainer.step();
        }
        through[static_cast<std::size_t>(net.rank())] = jobs::copy_of_parameters(trainer);
    });
    in_process::run(2, [&](auto& net) {
        auto trainer = jobs::make_trainer(net, plan);
        trainer.restore(checkpoint::load(path(net.rank())), "");
        while (trainer.step_number() < 10) trainer.step();
        resumed[static_cast<std::size_t>(net.rank())] = jobs::copy_of_parameters(trainer);
    });
    CHECK(resumed == through);
}
