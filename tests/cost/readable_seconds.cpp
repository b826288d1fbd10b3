#include <rill/cost/readable_seconds.hpp>

#include <doctest/doctest.h>

#include <string>

TEST_CASE("seconds are printed in the largest unit of which there is at least one") {
    const auto check = [](double seconds, double value, const std::string& unit) {
        const rill::cost::readable_seconds read = rill::cost::readable(seconds);
        CHECK(read.value == doctest::Approx(value));
        CHECK(read.unit == unit);
    };
    check(3600, 3600, "s");
    check(1, 1, "s");
    check(0.5, 500, "ms");
    check(1e-3, 1, "ms");
    check(2.5e-4, 250, "us");
    check(3e-9, 3e-3, "us");
    check(0, 0, "us");
}
