// Two translation units include everything: a function that is not inline would be defined twice.
#include <doctest/doctest.h>

#include <rill/rill.hpp>

int seen_by_the_other_unit();

TEST_CASE("two translation units share the umbrella header") { CHECK(seen_by_the_other_unit() == RILL_VERSION_MINOR); }
