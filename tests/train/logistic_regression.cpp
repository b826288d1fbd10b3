#include <rill/train/logistic_regression.hpp>

#include "samples.hpp"

#include <rill/train/accuracy.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/softmax_regression.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace rill;
using namespace rill::train;

TEST_CASE("logistic_regression: starts at zero, where both classes are equally likely") {
    const dataset data = random_dataset(20, 8, 2);
    logistic_regression<float> model(8);
    CHECK(model.dimension() == 9);
    CHECK(model.layers().size() == 2);
    std::vector<float> w(9, 1.0F), g(9);
    model.initialise(w, random_key{1});
    CHECK(w == std::vector<float>(9));
    CHECK(model.gradient(w, {data, first_rows(20)}, g) == doctest::Approx(std::log(2.0)));
    CHECK(model.loss(w, {data, first_rows(20)}) == doctest::Approx(std::log(2.0)));
}

TEST_CASE("logistic_regression: loss and gradient are those of a softmax_regression of two classes") {
    const dataset data = random_dataset(30, 5, 2);
    logistic_regression<double> model(5);
    softmax_regression<double> both(5, 2);
    const std::vector<double> w{0.5, -1, 2, 0.25, -3, 0.75};
    std::vector<double> pair(12), g(6), of_pair(12);  // the weights of class 0, then of class 1, then the biases
    std::copy_n(w.begin(), 5, pair.begin() + 5);
    pair[11] = w[5];
    const std::vector<std::uint32_t> rows = first_rows(30);
    CHECK(model.gradient(w, {data, rows}, g) == doctest::Approx(both.gradient(pair, {data, rows}, of_pair)));
    CHECK(model.loss(w, {data, rows}) == doctest::Approx(both.loss(pair, {data, rows})));
    for (std::size_t i = 0; i < 5; ++i) CHECK(g[i] == doctest::Approx(of_pair[5 + i]));
    CHECK(g[5] == doctest::Approx(of_pair[11]));
    CHECK(accuracy(model, w, data) == accuracy(both, pair, data));
}

TEST_CASE_TEMPLATE("objectives: with weights, the weighted sum over the rows instead of the mean", Model,
                   logistic_regression<double>, softmax_regression<double>) {
    const dataset data = random_dataset(12, 5, 2);
    auto model = [] {
        if constexpr (requires { Model(5); })
            return Model(5);
        else
            return Model(5, 2);
    }();
    std::vector<double> w(model.dimension()), g(w.size()), one(w.size()), expected(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.3 * static_cast<double>(i % 5) - 0.5;
    const std::vector<std::uint32_t> rows{3, 7, 1};
    const std::vector<double> weights{2.0, -0.5, 0.0};
    double loss = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        loss += static_cast<double>(weights[r]) * model.gradient(w, {data, std::span(rows).subspan(r, 1)}, one);
        for (std::size_t i = 0; i < w.size(); ++i) expected[i] += static_cast<double>(weights[r]) * one[i];
    }
    CHECK(model.gradient(w, {data, rows, weights}, g) == doctest::Approx(loss));
    CHECK(model.loss(w, {data, rows, weights}) == doctest::Approx(loss));
    for (std::size_t i = 0; i < w.size(); ++i) CHECK(g[i] == doctest::Approx(expected[i]));
    CHECK_THROWS_AS(model.loss(w, {data, rows, std::span(weights).first(2)}), contract_violation);
}

TEST_CASE("logistic_regression: learns linearly separable classes") {
    const dataset data = random_dataset(600, 8, 2), unseen = random_dataset(300, 8, 2, 2);
    logistic_regression<float> model(8);
    std::vector<float> w(model.dimension()), g(w.size());
    model.initialise(w, random_key{});
    auto optimizer = sgd{.momentum = 0.9}.bind(w.size());
    const auto rows = first_rows(600);
    for (int step = 0; step < 200; ++step) {
        model.gradient(w, {data, rows}, g);
        optimizer.step(w, g, 0.5);
    }
    CHECK(accuracy(model, w, unseen) > 0.95);
}

TEST_CASE("logistic_regression: far from the boundary, and with NaN") {
    dataset data = random_dataset(1, 2, 2);
    data.features = {1.0F, 0.0F};
    logistic_regression<float> model(2);
    std::vector<float> g(3);
    const std::vector<std::uint32_t> row{0};
    for (const std::int32_t label : {0, 1}) {
        data.labels = {label};
        const float right = label == 1 ? 1e4F : -1e4F;
        CHECK(model.gradient(std::vector<float>{right, 0, 0}, {data, row}, g) == 0.0);
        CHECK(g == std::vector<float>(3));
        CHECK(model.gradient(std::vector<float>{-right, 0, 0}, {data, row}, g) == doctest::Approx(1e4));
        CHECK(std::abs(g[0]) == doctest::Approx(1.0));
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(model.loss(std::vector<float>{nan, 0, 0}, {data, row})));
    data.labels = {2};
    CHECK_THROWS_AS(model.loss(std::vector<float>(3), {data, row}), contract_violation);
    CHECK_THROWS_AS(model.loss(std::vector<float>(4), {data, row}), contract_violation);
    CHECK_THROWS_AS(model.loss(std::vector<float>(3), {data, {}}), contract_violation);
}
