#include <rill/train/softmax.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

using namespace rill::train;

TEST_CASE("softmax: loss and gradient of known scores") {
    std::vector<double> scores{std::log(1.0), std::log(2.0), std::log(5.0)};
    CHECK(softmax_loss(std::span<const double>(scores), 1) == doctest::Approx(std::log(4.0)));
    CHECK(best_class(std::span<const double>(scores)) == 2);
    CHECK(softmax_gradient(std::span(scores), 1, 0.5) == doctest::Approx(std::log(4.0)));
    CHECK(scores[0] == doctest::Approx(0.5 * 0.125));
    CHECK(scores[1] == doctest::Approx(0.5 * (0.25 - 1)));
    CHECK(scores[2] == doctest::Approx(0.5 * 0.625));
}

TEST_CASE("softmax: scores of any magnitude") {
    std::vector<float> scores{-1e30F, 1e30F};
    CHECK(softmax_loss(std::span<const float>(scores), 1) == 0);
    CHECK(softmax_loss(std::span<const float>(scores), 0) > 1e30);
    CHECK(best_class(std::span<const float>(std::vector<float>{2, 3, 3})) == 1);
}

TEST_CASE("softmax: scores that are not finite show in the loss") {
    for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
        for (std::size_t place : {0U, 1U, 2U}) {
            std::vector<float> scores{1, 2, 3};
            scores[place] = bad;
            CHECK_FALSE(std::isfinite(softmax_loss(std::span<const float>(scores), 0)));
            CHECK_FALSE(std::isfinite(softmax_gradient(std::span(scores), 0, 1.0F)));
        }
}
