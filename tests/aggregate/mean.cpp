#include <rill/aggregate/mean.hpp>

#include "laws.hpp"

#include <cstdint>
#include <span>
#include <vector>

using namespace rill;

TEST_CASE_TEMPLATE("mean obeys the laws", T, float, double) { aggregate_tests::check_laws<T>(aggregate::mean{}); }

TEST_CASE_TEMPLATE("mean divides by the sum of the weights", T, float, double) {
    std::vector<T> values{T{6}, T{-9}, T{0}};
    aggregate::mean::finish(std::span<T>(values), 1.5);
    CHECK(values == std::vector<T>{T{4}, T{-6}, T{0}});
}

TEST_CASE("the mean of no contribution is zero") {
    std::vector<float> values(3, aggregate::mean::identity<float>());
    aggregate::mean::finish(std::span<float>(values), 0);
    CHECK(values == std::vector<float>(3, 0.0F));
}

TEST_CASE("mean does not accept integers") {
    CHECK(Aggregator<aggregate::mean, float>);
    CHECK(Aggregator<aggregate::mean, double>);
    CHECK_FALSE(Aggregator<aggregate::mean, std::int32_t>);
    CHECK_FALSE(Aggregator<aggregate::mean, std::int64_t>);
}
