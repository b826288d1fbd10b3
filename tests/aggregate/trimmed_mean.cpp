#include <rill/aggregate/trimmed_mean.hpp>

#include "laws.hpp"

#include <rill/core/contract.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace rill;

namespace {

template <class T>
T trimmed(int trim, std::vector<T> values) {
    return aggregate::trimmed_mean{.trim = trim}.combine(std::span<T>(values));
}

}  // namespace

TEST_CASE_TEMPLATE("trimmed_mean obeys the laws", T, float, double) {
    for (int trim : {0, 1, 3}) aggregate_tests::check_joint_laws<T>(aggregate::trimmed_mean{.trim = trim});
}

TEST_CASE_TEMPLATE("trimmed_mean leaves out the largest and the smallest", T, float, double) {
    using limits = std::numeric_limits<T>;
    const T nan = limits::quiet_NaN();
    CHECK(trimmed<T>(0, {T{1}, T{5}, T{3}}) == T{3});
    CHECK(trimmed<T>(1, {T{1}, limits::max(), T{3}, T{5}}) == T{4});
    CHECK(trimmed<T>(1, {T{1}, nan, T{3}, T{5}}) == T{4});
    CHECK(std::isnan(trimmed<T>(1, {nan, nan, T{3}, T{5}})));
    CHECK_FALSE(std::signbit(trimmed<T>(1, {-nan, -nan, T{3}, T{5}})));
    CHECK(trimmed<T>(1, {-limits::infinity(), T{2}, limits::infinity()}) == T{2});
    CHECK(trimmed<float>(0, std::vector<float>(9, std::numeric_limits<float>::max())) ==
          std::numeric_limits<float>::max());
}

TEST_CASE("trimmed_mean of doubles stays in the range of the kept values, however their sum is rounded") {
    CHECK(trimmed<double>(1, std::vector<double>(5, 0.1)) == 0.1);
    CHECK(trimmed<double>(0, std::vector<double>(4, 1.7e308)) == 1.7e308);
    CHECK(trimmed<double>(0, {-1.7e308, -1.7e308, -1.6e308}) == -1.7e308);
}

TEST_CASE("trimmed_mean of fewer values is their median") {
    CHECK(trimmed<double>(2, {1, 9, 3}) == 3);
    CHECK(trimmed<double>(2, {1, 9, 3, 4}) == 3.5);
    CHECK(trimmed<double>(2, {7}) == 7);
}

TEST_CASE("trimmed_mean: options and element types") {
    CHECK(aggregate::trimmed_mean{.trim = 3}.least_ranks() == 7);
    CHECK_THROWS_AS(aggregate::trimmed_mean{.trim = -1}.least_ranks(), contract_violation);
    CHECK_FALSE(JointAggregator<aggregate::trimmed_mean, std::int32_t>);
}
