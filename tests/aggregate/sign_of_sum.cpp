#include <rill/aggregate/sign_of_sum.hpp>

#include "laws.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace rill;

TEST_CASE_TEMPLATE("sign_of_sum obeys the laws", T, float, double) {
    aggregate_tests::check_laws<T>(aggregate::sign_of_sum{});
}

TEST_CASE_TEMPLATE("sign_of_sum: a tie is +1, a NaN stays", T, float, double) {
    using limits = std::numeric_limits<T>;
    std::vector<T> values{T{3}, T{-2}, T{0}, -T{0}, limits::denorm_min(), -limits::infinity(), limits::quiet_NaN()};
    aggregate::sign_of_sum::finish(std::span<T>(values), 7);
    CHECK(std::isnan(values.back()));
    values.pop_back();
    CHECK(values == std::vector<T>{T{1}, T{-1}, T{1}, T{1}, T{1}, T{-1}});
}

TEST_CASE("sign_of_sum does not accept integers") { CHECK_FALSE(Aggregator<aggregate::sign_of_sum, std::int32_t>); }
