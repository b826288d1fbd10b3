#include "laws.hpp"

#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/repetition_groups.hpp>

#include <doctest/doctest.h>

TEST_CASE("any_code: behaves as the code that it was made of") {
    using namespace rill::gradient_code;
    coding_test::check_laws(any_code(cyclic_mds{}.bind(7, 2)));
    coding_test::check_laws(any_code(repetition_groups{}.bind(7, 2)));
    CHECK(any_code(cyclic_mds{}.bind(7, 2)).partitions() == 7);
    CHECK(any_code(repetition_groups{}.bind(7, 2)).partitions() == 2);
    CHECK(any_code(cyclic_mds{}.bind(7, 2)).coefficients_of(3).size() == 3);
}
