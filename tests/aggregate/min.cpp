#include <rill/aggregate/min.hpp>

#include "laws.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

using namespace rill;

TEST_CASE_TEMPLATE("min obeys the laws", T, float, double, std::int32_t, std::int64_t) {
    aggregate_tests::check_laws<T>(aggregate::min{});
    CHECK(aggregate::min::fold(T{2}, T{3}) == T{2});
    constexpr T end = std::numeric_limits<T>::max();
    CHECK(aggregate::min::fold(aggregate::min::identity<T>(), end) == end);
}

TEST_CASE("min of infinities, of signed zeros and of NaN") {
    using limits = std::numeric_limits<float>;
    CHECK(aggregate::min::identity<float>() == limits::infinity());
    CHECK(std::signbit(aggregate::min::fold(-0.0F, 0.0F)));
    CHECK_FALSE(std::signbit(aggregate::min::fold(0.0F, -0.0F)));
    CHECK(aggregate::min::fold(1.0F, limits::quiet_NaN()) == 1.0F);
    CHECK(std::isnan(aggregate::min::fold(limits::quiet_NaN(), 1.0F)));
}
