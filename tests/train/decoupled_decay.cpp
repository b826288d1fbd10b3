#include <rill/train/decoupled_decay.hpp>

#include "../support/scratch.hpp"

#include <rill/train/adam.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace rill;
using namespace rill::train;

static_assert(decoupled_decay{sgd{}, 0.1}.is_linear);
static_assert(!decoupled_decay{adam{}, 0.1}.is_linear);

TEST_CASE("decoupled_decay: shrinks the parameters beside the optimizer's step") {
    std::vector<double> w{2, -4}, plain = w;
    const std::vector<double> gradient{0.5, 0.25};
    auto decaying = decoupled_decay{adam{}, 0.5}.bind<double>(2);
    auto optimizer = adam{}.bind<double>(2);
    for (int step = 0; step < 3; ++step) {
        decaying.step(w, gradient, 0.1);
        for (double& each : plain) each *= 1 - 0.1 * 0.5;
        optimizer.step(plain, gradient, 0.1);
    }
    CHECK(w == plain);
}

TEST_CASE("decoupled_decay: the velocity does not see the decay") {
    std::vector<double> w{2}, coupled = w;
    const std::vector<double> none{0.0};
    auto decaying = decoupled_decay{sgd{.momentum = 0.9}, 0.5}.bind<double>(1);
    auto inside = sgd{.momentum = 0.9, .weight_decay = 0.5}.bind<double>(1);
    decaying.step(w, none, 0.1);
    inside.step(coupled, none, 0.1);
    CHECK(w[0] == doctest::Approx(1.9));
    CHECK(decaying.inner().velocity()[0] == 0);
    CHECK(inside.velocity()[0] == doctest::Approx(1));
}

TEST_CASE("decoupled_decay: a wrong option is named") {
    CHECK(has(message_of<contract_violation>([] {
                  decoupled_decay{sgd{}, -1.0}.bind(1);
              }),
              "rill: train::decoupled_decay: decay is -1; it must be at least 0"));
    CHECK_THROWS_AS((decoupled_decay{sgd{}, 1e39}.bind<float>(1)), contract_violation);
}
