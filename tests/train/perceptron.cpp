#include <rill/train/perceptron.hpp>

#include "../support/allocations.hpp"
#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

template <class T>
std::vector<T> initial(const perceptron<T>& model, std::uint64_t seed = 1) {
    std::vector<T> parameters(model.dimension());
    model.initialise(parameters, random_key{seed});
    return parameters;
}

/// Compares each derivative with the central difference of the loss.
void check_gradient(perceptron<double> model, const dataset& data, std::span<const std::uint32_t> rows) {
    std::vector<double> w = initial(model), g(w.size(), std::nan(""));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] += 0.01 * std::sin(static_cast<double>(i));  // biases too
    const double loss = model.gradient(w, {data, rows}, g);
    CHECK(loss == doctest::Approx(model.loss(w, {data, rows})).epsilon(1e-12));
    double worst = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
        const double h = 1e-6, kept = w[i];
        w[i] = kept + h;
        const double above = model.loss(w, {data, rows});
        w[i] = kept - h;
        const double below = model.loss(w, {data, rows});
        w[i] = kept;
        const double error = std::abs(g[i] - (above - below) / (2 * h));
        if (!(error <= worst)) worst = error;
    }
    CHECK(worst < 1e-8);
}

}  // namespace

TEST_CASE("perceptron: the default has 407,050 parameters in four named parts") {
    const perceptron<float> model;
    CHECK(model.dimension() == 407'050);
    const std::vector<layer> expected{{"layer 1 weights", {0, 401'408}},
                                      {"layer 1 biases", {401'408, 401'920}},
                                      {"layer 2 weights", {401'920, 407'040}},
                                      {"layer 2 biases", {407'040, 407'050}}};
    CHECK(std::vector<layer>(model.layers().begin(), model.layers().end()) == expected);
}

TEST_CASE("perceptron: gradients agree with finite differences") {
    const dataset data = random_dataset(40, 6, 3);
    const std::vector<std::uint32_t> few{5, 0, 17, 17, 39}, all = first_rows(40);
    check_gradient(perceptron<double>({6, 3}), data, few);
    check_gradient(perceptron<double>({6, 7, 3}), data, all);
    check_gradient(perceptron<double>({6, 5, 4, 3}), data, few);
    check_gradient(perceptron<double>({6, 5, 3}), data, std::span(few).first(1));
}

TEST_CASE("perceptron: each part of a gradient is final when it is reported ready, the last part first") {
    const dataset data = random_dataset(20, 6, 3);
    const std::vector<std::uint32_t> rows = first_rows(20);
    perceptron<float> model({6, 5, 7, 4, 3});
    const std::vector<float> w = initial(model);
    std::vector<float> whole(w.size()), taken(w.size()), g(w.size(), 7.0F);
    const double loss = model.gradient(w, {data, rows}, whole);
    std::vector<std::size_t> order;
    const double same = model.gradient(w, {data, rows}, g, [&](std::size_t i) {
        order.push_back(i);
        const segment part = model.layers()[i].part;
        for (std::size_t c = part.begin; c < part.end; ++c) {
            taken[c] = g[c];
            g[c] = std::nanf("");  // not needed any more
        }
    });
    CHECK(same == loss);
    CHECK(taken == whole);
    CHECK(order == std::vector<std::size_t>{7, 6, 5, 4, 3, 2, 1, 0});
    for (const float left : g) CHECK(std::isnan(left));
}

TEST_CASE("perceptron: float and double agree where products have several tiles") {
    const dataset data = random_dataset(35, 150, 10);
    const std::vector<std::uint32_t> rows = first_rows(35);
    perceptron<float> narrow({150, 140, 10});
    perceptron<double> wide({150, 140, 10});
    const std::vector<float> w = initial(narrow);
    const std::vector<double> w2(w.begin(), w.end());
    std::vector<float> g(w.size());
    std::vector<double> g2(w.size());
    CHECK(narrow.gradient(w, {data, rows}, g) == doctest::Approx(wide.gradient(w2, {data, rows}, g2)).epsilon(1e-5));
    double worst = 0;
    for (std::size_t i = 0; i < g.size(); ++i) worst = std::max(worst, std::abs(double(g[i]) - g2[i]));
    CHECK(worst < 1e-5);
}

TEST_CASE("perceptron: initial weights depend on the key alone, and are within He's bounds") {
    const perceptron<float> model({24, 6, 3});
    const std::vector<float> w = initial(model, 7);
    CHECK(w == initial(model, 7));
    CHECK(w != initial(model, 8));
    float most = 0;
    for (std::size_t i = 0; i < 24 * 6; ++i) most = std::max(most, std::abs(w[i]));
    CHECK(most <= 0.5F);
    CHECK(most > 0.45F);
    for (std::size_t i = 24 * 6; i < 24 * 6 + 6; ++i) CHECK(w[i] == 0);
    CHECK(w[0] == 2 * counter_rng(random_key{7}.derive(0)).uniform(0) * 0.5F - 0.5F);
}

TEST_CASE("perceptron: a gradient has the same bits on every instance and at every address") {
    const dataset data = random_dataset(50, 20, 4);
    const std::vector<std::uint32_t> rows{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}, others = first_rows(50);
    perceptron<float> one({20, 33, 4}), other({20, 33, 4});
    const std::vector<float> w = initial(one);
    std::vector<float> g(w.size()), moved_w(w.size() + 1), moved_g(w.size() + 1);
    std::copy(w.begin(), w.end(), moved_w.begin() + 1);
    const double loss = one.gradient(w, {data, rows}, g);

    const std::span<const float> there = std::span(moved_w).subspan(1);
    other.gradient(there, {data, others}, std::span(moved_g).subspan(1));  // leaves other values in the scratch memory
    CHECK(other.gradient(there, {data, rows}, std::span(moved_g).subspan(1)) == loss);
    CHECK(std::equal(g.begin(), g.end(), moved_g.begin() + 1));
}

TEST_CASE("perceptron: a step in the steady state allocates nothing") {
    const dataset data = random_dataset(64, 300, 10);
    const std::vector<std::uint32_t> rows = first_rows(64);
    perceptron<float> model({300, 140, 10});
    const std::vector<float> w = initial(model);
    std::vector<float> g(w.size());
    std::vector<std::int32_t> classes(64);
    model.gradient(w, {data, rows}, g);
    const unsigned long before = allocations();
    model.gradient(w, {data, rows}, g);
    model.gradient(w, {data, std::span(rows).first(32)}, g);
    model.loss(w, {data, rows});
    model.predict(w, {data, rows}, classes);
    CHECK(allocations() == before);
}

TEST_CASE("perceptron: a NaN among the parameters shows in the loss") {
    const dataset data = random_dataset(8, 5, 3);
    const std::vector<std::uint32_t> rows = first_rows(8);
    perceptron<float> model({5, 4, 3});
    for (std::size_t place = 0; place < model.dimension(); place += 3) {
        std::vector<float> w = initial(model), g(w.size());
        w[place] = std::nanf("");
        CHECK(std::isnan(model.gradient(w, {data, rows}, g)));
        CHECK(std::isnan(model.loss(w, {data, rows})));
    }
}

TEST_CASE("perceptron: gradient descent fits data that no linear model can") {
    dataset data{.rows = 4, .columns = 2, .classes = 2, .features = {0, 0, 0, 1, 1, 0, 1, 1}, .labels = {0, 1, 1, 0}};
    const std::vector<std::uint32_t> rows = first_rows(4);
    perceptron<float> model({2, 16, 2});
    std::vector<float> w = initial(model), g(w.size());
    const double before = model.loss(w, {data, rows});
    for (int step = 0; step < 300; ++step) {
        model.gradient(w, {data, rows}, g);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.5F * g[i];
    }
    CHECK(model.loss(w, {data, rows}) < 0.05 * before);
    std::vector<std::int32_t> classes(4);
    model.predict(w, {data, rows}, classes);
    CHECK(classes == data.labels);
}

TEST_CASE("perceptron: arguments of wrong sizes break the contract") {
    const dataset data = random_dataset(8, 5, 3);
    const std::vector<std::uint32_t> rows = first_rows(8), beyond{8}, none;
    perceptron<float> model({5, 4, 3}), narrow({4, 3}), few({5, 1});
    std::vector<float> w(model.dimension()), g(w.size());
    std::vector<std::int32_t> classes(7);
    CHECK_THROWS_AS(model.gradient(std::span(w).first(3), {data, rows}, g), contract_violation);
    CHECK_THROWS_AS(model.gradient(w, {data, rows}, std::span(g).first(3)), contract_violation);
    CHECK_THROWS_AS(model.gradient(w, {data, beyond}, g), contract_violation);
    CHECK_THROWS_AS(model.gradient(w, {data, none}, g), contract_violation);
    CHECK_THROWS_AS(model.predict(w, {data, rows}, classes), contract_violation);
    CHECK_THROWS_AS(narrow.loss(std::vector<float>(15), {data, rows}), contract_violation);
    CHECK_THROWS_AS(few.loss(std::vector<float>(6), {data, rows}), contract_violation);
    CHECK_THROWS_AS(perceptron<float>({5}), contract_violation);
    CHECK_THROWS_AS(perceptron<float>({5, 0, 2}), contract_violation);
}

TEST_CASE("perceptron: the bits do not depend on where the memory lies") {
    const dataset data = random_dataset(64, 33, 5);
    perceptron<float> model({33, 17, 5});
    const std::size_t n = model.dimension();
    const auto rows = first_rows(31);
    const auto gradient_at = [&](std::size_t offset) {
        aligned_vector<float> parameters(n + offset), gradient(n + offset);
        model.initialise(std::span(parameters).subspan(offset), random_key{3});
        model.gradient(std::span(parameters).subspan(offset), {data, rows}, std::span(gradient).subspan(offset));
        return std::vector<float>(gradient.begin() + static_cast<std::ptrdiff_t>(offset), gradient.end());
    };
    const auto expected = gradient_at(0);
    for (std::size_t offset = 1; offset < 16; ++offset) CHECK(gradient_at(offset) == expected);
}
