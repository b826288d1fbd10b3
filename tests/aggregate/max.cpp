#include <rill/aggregate/max.hpp>

#include "laws.hpp"

#include <bit>
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
    CHECK_FALSE(std::signbit(aggregate::max::fold(-0.0F, 0.0F)));
    CHECK_FALSE(std::signbit(aggregate::max::fold(0.0F, -0.0F)));
    for (const float nan : {limits::quiet_NaN(), -limits::quiet_NaN()})
        for (const float x :
             {1.0F, 0.0F, -0.0F, limits::infinity(), -limits::infinity(), aggregate::max::identity<float>()}) {
            CHECK(std::bit_cast<unsigned>(aggregate::max::fold(x, nan)) == std::bit_cast<unsigned>(nan));
            CHECK(std::bit_cast<unsigned>(aggregate::max::fold(nan, x)) == std::bit_cast<unsigned>(nan));
        }
    const float one = std::bit_cast<float>(0x7fc0'0001U), other = std::bit_cast<float>(0xffc0'0002U);
    CHECK(std::isnan(aggregate::max::fold(one, other)));
    CHECK(std::bit_cast<unsigned>(aggregate::max::fold(one, other)) ==
          std::bit_cast<unsigned>(aggregate::max::fold(other, one)));
}
