#include <rill/train/clip.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

using namespace rill::train;

TEST_CASE("clip: the norm is summed in double precision") {
    CHECK(norm(std::span<const float>{}) == 0);
    for (std::size_t n : {1U, 7U, 8U, 9U, 1000U})
        CHECK(norm(std::span<const float>(std::vector<float>(n, 3.0F))) ==
              doctest::Approx(3 * std::sqrt(double(n))).epsilon(1e-15));
    const std::vector<float> large(16, 1e30F);  // their squares overflow in float
    CHECK(norm(std::span<const float>(large)) == doctest::Approx(4e30));
}

TEST_CASE("clip: by norm keeps the direction, and does not change short gradients") {
    std::vector<float> g{3, 4};
    CHECK(clip_norm{.most = 5}.apply(std::span(g)) == 5);
    CHECK(g == std::vector<float>{3, 4});
    CHECK(clip_norm{.most = 2.5}.apply(std::span(g)) == 5);
    CHECK(g == std::vector<float>{1.5F, 2});
    CHECK(clip_norm{}.apply(std::span(g)) == 2.5);
}

TEST_CASE("clip: a norm that is not finite is returned, and the gradient is unchanged") {
    const float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> g{1, infinity}, bad{1, std::nanf("")};
    CHECK(clip_norm{.most = 1}.apply(std::span(g)) == infinity);
    CHECK(g == std::vector<float>{1, infinity});
    CHECK(std::isnan(clip_norm{.most = 1}.apply(std::span(bad))));
    CHECK(bad[0] == 1);
}

TEST_CASE("clip: by value limits each coordinate") {
    std::vector<float> g{-3, -0.5F, 0.5F, 3, std::nanf("")};
    clip_value{.most = 1}.apply(std::span(g));
    CHECK(std::vector<float>(g.begin(), g.begin() + 4) == std::vector<float>{-1, -0.5F, 0.5F, 1});
    CHECK(std::isnan(g[4]));
}

TEST_CASE("per_bucket: limits the norm of the bucket that it is given") {
    std::vector<float> part{3, 4};
    per_bucket{clip_norm{.most = 10}}.apply(std::span(part));
    CHECK(part == std::vector<float>{3, 4});
    per_bucket{clip_norm{.most = 2.5}}.apply(std::span(part));
    CHECK(part == std::vector<float>{1.5F, 2});
}

TEST_CASE("clip: a bound that is negative or NaN is refused") {
    std::vector<float> x{1, 2};
    for (const double most : {-1.0, std::nan("")}) {
        CHECK_THROWS_AS(rill::train::clip_norm{most}.apply(std::span<float>(x)), rill::contract_violation);
        CHECK_THROWS_AS(rill::train::clip_value{most}.apply(std::span<float>(x)), rill::contract_violation);
    }
    CHECK(x == std::vector<float>{1, 2});
}
