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
using rill::kernel::find_non_finite_sum;
using rill::kernel::magnitude;

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
            volatile T product = static_cast<T>(scale * x[i]);  // the product is rounded on its own
            expected[i] = static_cast<T>(base[i] + product);
        }
        const auto largest = rill::kernel::largest<T>(expected);
        CHECK(add_scaled<T>(base, x, scale, out) == largest);
        CHECK(out == expected);
        auto in_place = base;
        CHECK(add_scaled<T>(in_place, x, scale, in_place) == largest);
        CHECK(in_place == expected);
        in_place = x;
        CHECK(add_scaled<T>(base, in_place, scale, in_place) == largest);
        CHECK(in_place == expected);
    }
}

}  // namespace

TEST_CASE("add_scaled rounds product and sum, in and out of place") {
    check_sums<float>(0.3F);
    check_sums<double>(-1e-3);
    check_sums<std::int32_t>(3);
}

TEST_CASE("the largest magnitude is found wherever it is") {
    CHECK(rill::kernel::largest<float>({}) == 0);
    for (const std::size_t at : {0U, 5U, 63U, 64U, 100U, 191U, 192U, 199U}) {
        CAPTURE(at);
        std::vector<float> x(200, 1.0F), base(200, 0.5F), out(200);
        x[at] = -3.0F;
        CHECK(rill::kernel::largest<float>(x) == magnitude(3.0F));
        CHECK(add_scaled<float>(base, x, 2, out) == magnitude(5.5F));
        x[at] = std::numeric_limits<float>::quiet_NaN();
        x[199 - at] = std::numeric_limits<float>::infinity();
        CHECK(rill::kernel::largest<float>(x) > magnitude(std::numeric_limits<float>::infinity()));
    }
}

TEST_CASE("the first non-finite sum of finite operands is found") {
    const float huge = std::numeric_limits<float>::max();
    for (const std::size_t at : {0U, 5U, 63U, 64U, 100U, 191U, 192U, 198U}) {
        CAPTURE(at);
        std::vector<float> base(200, 1.0F), x(200, 1.0F);
        CHECK(!find_non_finite_sum<float>(base, x, 1));
        x[199] = std::numeric_limits<float>::infinity();
        CHECK(find_non_finite_sum<float>(base, x, 1) == 199);
        x[at] = base[at] = huge;
        CHECK(find_non_finite_sum<float>(base, x, 1) == at);
        CHECK(find_non_finite_sum<float>(base, x, -1) == 199);
        x[at] = std::numeric_limits<float>::quiet_NaN();
        CHECK(find_non_finite_sum<float>(base, x, 1) == at);
    }
}

TEST_CASE("add_scaled by tasks gives the same bits and the same largest magnitude") {
    constexpr std::size_t n = 200'000;
    const auto base = some<float>(n, 3);
    auto x = some<float>(n, 4);
    x[150'000] = 1e6F;
    std::vector<float> alone(n), spread(n);
    const auto most = add_scaled<float>(base, x, 0.7F, alone);
    CHECK(most == magnitude(alone[150'000]));
    CHECK(add_scaled<float>(base, x, 0.7F, spread, support::threads{}) == most);
    CHECK(alone == spread);
    CHECK(rill::kernel::largest<float>(alone, support::threads{}) == most);
}
