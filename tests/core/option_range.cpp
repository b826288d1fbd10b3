#include <rill/core/option_range.hpp>

#include <doctest/doctest.h>

using rill::detail::require_option;

TEST_CASE("an option out of its range is named with its value, its range and the rank") {
    CHECK_NOTHROW(require_option(true, "a: b", 1, "at least 1"));
    CHECK_THROWS_WITH_AS(require_option(false, "a: b", -1, "at least 1"), "rill: a: b is -1; it must be at least 1",
                         rill::contract_violation);
    CHECK_THROWS_WITH_AS(require_option(false, "a: b", 1e-9, "above 1", 3),
                         "rill: a: b is 1e-09; it must be above 1, on rank 3", rill::contract_violation);
}
