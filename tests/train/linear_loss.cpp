#include <rill/train/linear_loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

using namespace rill::train;

TEST_CASE_TEMPLATE("linear_loss: the slope is the derivative of the value", Loss, logistic, hinge, squared) {
    for (const float label : {1.0F, -1.0F, 0.0F})
        for (const double score : {-3.1, -0.4, 0.0, 0.7, 1.3}) {
            const double step = 1e-6;
            const double seen = (Loss::value(score + step, label) - Loss::value(score - step, label)) / (2 * step);
            CHECK(Loss::slope(score, label) == doctest::Approx(seen).epsilon(1e-6));
        }
    CHECK(std::isnan(Loss::value(std::numeric_limits<double>::quiet_NaN(), 1.0F)));
    CHECK(std::isnan(Loss::slope(std::numeric_limits<double>::quiet_NaN(), 1.0F)));
}

TEST_CASE("linear_loss: the labels 0 and -1 are one class") {
    CHECK(logistic::value(0.5, 0.0F) == logistic::value(0.5, -1.0F));
    CHECK(hinge::slope(0.5, 0.0F) == 1);
    CHECK(squared::slope(0.5, 0.0F) == 0.5);
}

TEST_CASE("linear_loss: large scores do not overflow") {
    CHECK(logistic::value(-1e30F, 1.0F) == doctest::Approx(1e30));
    CHECK(logistic::value(1e30F, 1.0F) == 0);
    CHECK(logistic::slope(-1e30F, 1.0F) == -1);
    CHECK(logistic::slope(1e30F, 1.0F) == 0);
}
