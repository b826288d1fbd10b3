#include <rill/train/sparse_linear.hpp>

#include "../support/scratch.hpp"
#include "samples.hpp"
#include "sparse_samples.hpp"
#include "step_cost.hpp"

#include <rill/testing/sparse_objective_laws.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/logistic_regression.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

std::vector<double> spread_out(const stream<double>& gradient) {
    std::vector<double> made(gradient.dimension());
    for (std::size_t e = 0; e < gradient.count(); ++e) made[gradient.indices()[e]] = gradient.values()[e];
    return made;
}

}  // namespace

TEST_CASE_TEMPLATE("sparse_linear: keeps the laws of sparse objectives", Loss, logistic, hinge, squared) {
    const sparse_dataset data = random_sparse(60, 50, 9);
    std::vector<std::int64_t> counts(50);
    count_columns(data, counts);
    const std::vector<std::uint32_t> rows{3, 7, 30, 31, 3, 59}, others = first_rows(12);
    const std::vector<double> weights{0.5, -1, 2, 0.25, 1, 3};
    int laws = 0;
    const auto check = [&](auto model) {
        for (const auto given : {std::span<const double>(), std::span<const double>(weights)})
            testing::for_each_sparse_objective_law(model, {data, rows, given}, {data, others},
                                                   [&](const char* name, const testing::law_outcome& outcome) {
                                                       ++laws;
                                                       CHECK_MESSAGE(outcome.held, name << ": " << outcome.what);
                                                   });
    };
    check(sparse_linear<Loss, double>(50));
    check(sparse_linear<Loss, double>(50, lazy_l2(0.1, counts, data.rows)));
    check(sparse_linear<Loss, float>(50));
    CHECK(laws == 6 * 6);
}

TEST_CASE("sparse_linear: loss and gradient are those of logistic_regression on densified rows") {
    for (const bool has_values : {true, false}) {
        const sparse_dataset data = random_sparse(80, 40, 10, has_values);
        const dataset dense = densified(data);
        sparse_linear<logistic, double> model(40);
        logistic_regression<double> expected(40);
        std::vector<double> w(41), g(41);
        for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.1 * static_cast<double>(i % 7) - 0.3;
        const std::vector<std::uint32_t> rows = first_rows(80);
        stream<double> gradient;
        CHECK(model.gradient(w, {data, rows}, gradient) == doctest::Approx(expected.gradient(w, {dense, rows}, g)));
        const std::vector<double> spread = spread_out(gradient);
        for (std::size_t i = 0; i < w.size(); ++i) CHECK(spread[i] == doctest::Approx(g[i]));
        CHECK(accuracy(model, w, data) == accuracy(expected, w, dense));
    }
}

TEST_CASE("sparse_linear: entries are exactly the columns of the batch and the bias") {
    const sparse_dataset data = random_sparse(30, 200, 6);
    const std::vector<std::uint32_t> rows{4, 11, 29};
    std::set<std::uint32_t> columns{200};
    for (const std::uint32_t r : rows) columns.insert(data.row(r).columns.begin(), data.row(r).columns.end());
    std::vector<float> w(201);
    stream<float> gradient;
    sparse_linear<logistic>(200).gradient(w, {data, rows}, gradient);
    CHECK(std::vector<std::uint32_t>(gradient.indices().begin(), gradient.indices().end()) ==
          std::vector<std::uint32_t>(columns.begin(), columns.end()));
}

TEST_CASE("sparse_linear: samples beyond the margin of the hinge have no entries, unless a penalty has") {
    const sparse_dataset data{.rows = 2, .columns = 4, .starts = {0, 2, 3}, .indices = {0, 2, 3}, .labels = {1, -1}};
    std::vector<double> w{2, 0, 1, 0.5, 0};
    stream<double> gradient;
    sparse_linear<hinge, double> model(4);
    CHECK(model.gradient(w, {data, first_rows(2)}, gradient) == 0.75);  // the second row's 1.5, halved
    CHECK(spread_out(gradient) == std::vector<double>{0, 0, 0, 0.5, 0.5});
    CHECK(gradient.count() == 2);
    const std::vector<std::int64_t> counts{1, 0, 1, 1};
    sparse_linear<hinge, double> penalised(4, lazy_l2(0.5, counts, 2));
    penalised.gradient(w, {data, first_rows(2)}, gradient);
    CHECK(spread_out(gradient) == std::vector<double>{1, 0, 0.5, 0.75, 0.5});
}

TEST_CASE("lazy_l2: over all rows it is the whole penalty") {
    const sparse_dataset data = random_sparse(70, 25, 8);
    std::vector<std::int64_t> counts(25);
    count_columns(data, counts);
    sparse_linear<squared, double> plain(25), penalised(25, lazy_l2(0.3, counts, data.rows));
    std::vector<double> w(26), g(26), expected(26);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.2 * static_cast<double>(i % 5) - 0.4;
    const std::vector<std::uint32_t> rows = first_rows(70);
    double loss = plain.gradient(w, {data, rows}, std::span(expected));
    for (std::size_t c = 0; c < 25; ++c) {
        REQUIRE(counts[c] > 0);
        loss += 0.15 * w[c] * w[c];
        expected[c] += 0.3 * w[c];
    }
    CHECK(penalised.gradient(w, {data, rows}, std::span(g)) == doctest::Approx(loss));
    for (std::size_t i = 0; i < w.size(); ++i) CHECK(g[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    CHECK_THROWS_AS(lazy_l2(-1, counts, 70), contract_violation);
    CHECK_THROWS_AS(lazy_l2(std::numeric_limits<double>::infinity(), counts, 70), contract_violation);
    CHECK_THROWS_AS(lazy_l2(1e38, std::vector<std::int64_t>{1}, 70), contract_violation);  // times 70: no float
    for (const std::int64_t odd : {-1, 71}) {
        auto wrong = counts;
        wrong[3] = odd;
        const std::string message = message_of<contract_violation>([&] { lazy_l2(1, wrong, 70); });
        CHECK_MESSAGE(has(message, "count of column 3 is " + std::to_string(odd) + "; it must be from 0 to 70"),
                      message);
    }
    CHECK_THROWS_AS(sparse_linear<squared>(24, lazy_l2(1, counts, 70)), contract_violation);
}

TEST_CASE("sparse_linear: a step touches and allocates as much with a billion columns as with ten thousand") {
    const auto cost_with = [](std::size_t columns) { return cost_of_step(sparse_linear<logistic>(columns), columns); };
    const step_cost few = cost_with(10'000), many = cost_with(1'000'000'000);
    CHECK(few.entries > 200);
    CHECK(many.entries > 200);
    CHECK(many.pages <= many.entries);
    CHECK(many.pages >= few.pages);
#ifndef RILL_TEST_SANITIZED
    CHECK(many.later_allocations == 0);
    CHECK(few.later_allocations == 0);
    CHECK(few.allocated < 40 * 20 * 30 * 2);
    CHECK(many.allocated < 40 * 20 * 30 * 2);
#endif
}

TEST_CASE("sparse_linear: a value that is not finite becomes a gradient that is not") {
    const sparse_dataset data{.rows = 1, .columns = 2, .starts = {0, 1}, .indices = {1}, .labels = {1}};
    const std::vector<float> w{0, std::numeric_limits<float>::quiet_NaN(), 0};
    stream<float> gradient;
    sparse_linear<hinge>(2).gradient(w, {data, first_rows(1)}, gradient);
    REQUIRE(gradient.count() == 2);
    CHECK(std::isnan(gradient.values()[0]));
    CHECK_THROWS_AS(sparse_linear<hinge>(1).gradient(w, {data, first_rows(1)}, gradient), contract_violation);
}

TEST_CASE_TEMPLATE("sparse_linear: learns separable classes", Loss, logistic, hinge) {
    const sparse_dataset data = random_sparse(800, 60, 12), unseen = random_sparse(300, 60, 12, true, 2);
    sparse_linear<Loss> model(60);
    std::vector<float> w(61);
    auto optimizer = sgd{}.template bind<float>(61);
    stream<float> gradient;
    for (int step = 0; step < 300; ++step) {
        model.gradient(w, {data, first_rows(800)}, gradient);
        optimizer.step(w, gradient.view(), 2);
    }
    CHECK(accuracy(model, w, unseen) > 0.93);
}
