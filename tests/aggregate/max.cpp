#include <rill/aggregate/max.hpp>

#include "laws.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

using namespace rill;

TEST_CASE_TEMPLATE("max obeys the laws", T, float, double, std::int32_t, std::int64_t) {
    aggregate_tests::check_laws<T>(aggregate::max{});
    CHECK(aggregate::max::fold(T{2}, T{3}) == T{3});
    constexpr T end = std::numeric_limits<T>::lowest();
    CHECK(aggregate::max::fold(aggregate::max::identity<T>(), end) == end);
}

TEST_CASE("max of infinities, of signed zeros and of NaN") {
    using limits = std::numeric_limits<float>;
    CHECK(aggregate::max::identity<float>() == -limits::infinity());
    CHECK(std::signbit(aggregate::max::fold(-0.0F, 0.0F)));
    CHECK_FALSE(std::signbit(aggregate::max::fold(0.0F, -0.0F)));
    CHECK(aggregate::max::fold(1.0F, limits::quiet_NaN()) == 1.0F);
    CHECK(std::isnan(aggregate::max::fold(limits::quiet_NaN(), 1.0F)));
}
