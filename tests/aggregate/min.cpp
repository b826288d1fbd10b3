#include <rill/aggregate/min.hpp>

#include "laws.hpp"

#include <bit>
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
    CHECK(std::signbit(aggregate::min::fold(0.0F, -0.0F)));
    for (const float nan : {limits::quiet_NaN(), -limits::quiet_NaN()})
        for (const float x :
             {1.0F, 0.0F, -0.0F, limits::infinity(), -limits::infinity(), aggregate::min::identity<float>()}) {
            CHECK(std::bit_cast<unsigned>(aggregate::min::fold(x, nan)) == std::bit_cast<unsigned>(nan));
            CHECK(std::bit_cast<unsigned>(aggregate::min::fold(nan, x)) == std::bit_cast<unsigned>(nan));
        }
    const float one = std::bit_cast<float>(0x7fc0'0001U), other = std::bit_cast<float>(0xffc0'0002U);
    CHECK(std::isnan(aggregate::min::fold(one, other)));
    CHECK(std::bit_cast<unsigned>(aggregate::min::fold(one, other)) ==
          std::bit_cast<unsigned>(aggregate::min::fold(other, one)));
}
