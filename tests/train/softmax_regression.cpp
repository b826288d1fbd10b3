#include <rill/train/softmax_regression.hpp>

#include "samples.hpp"

#include <rill/train/accuracy.hpp>
#include <rill/train/sampler.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace rill;
using namespace rill::train;

TEST_CASE("softmax_regression: starts at zero, where every class is equally likely") {
    const dataset data = random_dataset(20, 8, 4);
    softmax_regression<float> model(8, 4);
    CHECK(model.dimension() == 36);
    CHECK(model.layers().size() == 2);
    std::vector<float> w(36, 1.0F), g(36);
    model.initialise(w, random_key{1});
    CHECK(w == std::vector<float>(36));
    CHECK(model.gradient(w, {data, first_rows(20)}, g) == doctest::Approx(std::log(4.0)));
    CHECK_THROWS_AS(model.initialise(std::span(w).first(3), random_key{1}), contract_violation);
}

TEST_CASE("softmax_regression: learns linearly separable classes") {
    const dataset data = random_dataset(600, 8, 3), unseen = random_dataset(300, 8, 3, 2);
    softmax_regression<float> model(8, 3);
    std::vector<float> w(model.dimension()), g(w.size());
    model.initialise(w, random_key{});
    auto optimizer = sgd{.momentum = 0.9}.bind(w.size());
    sampler samples({.rows = 600, .batch = 30, .key = {1}});
    while (samples.epoch() < 30) {
        model.gradient(w, {data, samples.next()}, g);
        optimizer.step(w, g, 0.5);
    }
    CHECK(accuracy(model, w, unseen) > 0.9);
}
