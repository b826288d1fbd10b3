#include <rill/aggregate/sum.hpp>

#include "laws.hpp"

#include <cstdint>

using namespace rill;

TEST_CASE_TEMPLATE("sum obeys the laws", T, float, double, std::int32_t, std::int64_t) {
    aggregate_tests::check_laws<T>(aggregate::sum{});
    CHECK(aggregate::sum::fold(T{2}, T{3}) == T{5});
}
