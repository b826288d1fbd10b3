#include <rill/aggregate/median.hpp>

#include "laws.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace rill;

namespace {

template <class T>
T median_of(std::vector<T> values) {
    return aggregate::median::combine(std::span<T>(values));
}

}  // namespace

TEST_CASE_TEMPLATE("median obeys the laws", T, float, double, std::int32_t, std::int64_t) {
    aggregate_tests::check_joint_laws<T>(aggregate::median{});
    CHECK(median_of<T>({T{5}, T{-9}, T{1}}) == T{1});
    CHECK(median_of<T>({T{5}, T{-9}, T{1}, T{3}}) == T{2});
}

TEST_CASE("median of integers rounds towards the smaller, and does not overflow") {
    using limits = std::numeric_limits<std::int32_t>;
    CHECK(median_of<std::int32_t>({3, 2}) == 2);
    CHECK(median_of<std::int32_t>({-3, -2}) == -3);
    CHECK(median_of<std::int32_t>({limits::max(), limits::max() - 2}) == limits::max() - 1);
}

TEST_CASE_TEMPLATE("median counts a NaN as larger than every number", T, float, double) {
    using limits = std::numeric_limits<T>;
    const T nan = limits::quiet_NaN(), infinity = limits::infinity();
    CHECK(median_of<T>({nan, T{1}, T{2}}) == T{2});
    CHECK(median_of<T>({nan, T{1}, infinity}) == infinity);
    CHECK(std::isnan(median_of<T>({nan, T{1}})));
    CHECK(std::isnan(median_of<T>({nan, -nan, T{1}})));
    CHECK_FALSE(std::signbit(median_of<T>({-nan, -nan, -nan})));
    CHECK(median_of<T>({limits::max(), limits::max()}) == limits::max());
    CHECK(std::signbit(median_of<T>({T{0}, -T{0}, -T{0}})));
}
