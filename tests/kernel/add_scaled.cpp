#include <rill/kernel/add_scaled.hpp>

#include "../support/threads.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using rill::kernel::add_scaled;

namespace {

template <class T>
std::vector<T> some(std::size_t n, int seed) {
    std::vector<T> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(std::sin(static_cast<double>(i) * 1.7 + seed) * 100);
    return x;
}

template <class T>
void check_sums(T scale) {
    for (const std::size_t n : {0U, 1U, 63U, 64U, 65U, 130U, 1000U}) {
        const auto base = some<T>(n, 1), x = some<T>(n, 2);
        std::vector<T> out(n), expected(n);
        for (std::size_t i = 0; i < n; ++i) {
            volatile T product = static_cast<T>(scale * x[i]);  // rounded by itself
            expected[i] = static_cast<T>(base[i] + product);
        }
        CHECK(!add_scaled<T>(base, x, scale, out));
        CHECK(out == expected);
        auto in_place = base;
        CHECK(!add_scaled<T>(in_place, x, scale, in_place));
        CHECK(in_place == expected);
        in_place = x;
        CHECK(!add_scaled<T>(base, in_place, scale, in_place));
        CHECK(in_place == expected);
    }
}

}  // namespace

TEST_CASE("add_scaled rounds product and sum, in and out of place") {
    check_sums<float>(0.3F);
    check_sums<double>(-1e-3);
    check_sums<std::int32_t>(3);
}

TEST_CASE("add_scaled names the first sum that is not finite") {
    const float huge = std::numeric_limits<float>::max();
    for (const std::size_t at : {0U, 5U, 63U, 64U, 100U, 191U, 192U, 199U}) {
        CAPTURE(at);
        std::vector<float> base(200, 1.0F), x(200, 1.0F), out(200);
        x[at] = std::numeric_limits<float>::quiet_NaN();
        x[199] = std::numeric_limits<float>::infinity();
        CHECK(add_scaled<float>(base, x, 1, out) == at);
        x[at] = base[at] = huge;
        CHECK(add_scaled<float>(base, x, 1, out) == at);
    }
}

TEST_CASE("add_scaled by tasks gives the same bits, and the same first coordinate") {
    constexpr std::size_t n = 200'000;
    const auto base = some<float>(n, 3);
    auto x = some<float>(n, 4);
    std::vector<float> alone(n), spread(n);
    CHECK(!add_scaled<float>(base, x, 0.7F, alone));
    CHECK(!add_scaled<float>(base, x, 0.7F, spread, support::threads{}));
    CHECK(alone == spread);
    x[70'001] = x[150'000] = std::numeric_limits<float>::infinity();
    CHECK(add_scaled<float>(base, x, 0.7F, spread, support::threads{}) == 70'001);
}
