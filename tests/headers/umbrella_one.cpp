// Two translation units include everything: the linker would find a function that is not inline twice.
#include <doctest/doctest.h>

#include <rill/rill.hpp>

int seen_by_the_other_unit();

TEST_CASE("two translation units share the umbrella header") { CHECK(seen_by_the_other_unit() == RILL_VERSION_MINOR); }
