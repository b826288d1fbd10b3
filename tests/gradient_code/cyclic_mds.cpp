#include "laws.hpp"

#include <rill/gradient_code/cyclic_mds.hpp>

#include <doctest/doctest.h>

using rill::gradient_code::amplification;
using rill::gradient_code::cyclic_mds;

TEST_CASE("cyclic_mds: the laws of gradient codes, for all s < n up to 8") {
    for (int n = 1; n <= 8; ++n)
        for (int s = 0; s < n; ++s) coding_test::check_laws(cyclic_mds{}.bind(n, s), 30);
}

TEST_CASE("cyclic_mds: the laws of gradient codes, for larger groups") {
    coding_test::check_laws(cyclic_mds{}.bind(12, 3), 100);
    coding_test::check_laws(cyclic_mds{}.bind(12, 4), 50);
    coding_test::check_laws(cyclic_mds{}.bind(65, 3), 10);
}

TEST_CASE("cyclic_mds: amplification of (12, 3) and (12, 5)") {
    const auto three = amplification(cyclic_mds{}.bind(12, 3));
    CHECK(three.is_exact);
    CHECK(three.sets == 220);
    CHECK(three.worst == doctest::Approx(13.928).epsilon(1e-4));
    CHECK(three.median < 2.5);
    CHECK(amplification(cyclic_mds{}.bind(12, 5)).worst == doctest::Approx(41.785).epsilon(1e-4));
}

TEST_CASE("cyclic_mds: amplifies beyond single precision for many stragglers, and reports that it sampled") {
    const auto many = amplification(cyclic_mds{}.bind(60, 15), {.samples = 5});
    CHECK_FALSE(many.is_exact);
    CHECK(many.sets == 65);
    CHECK(many.worst > 1e7);
}

TEST_CASE("cyclic_mds: worker i holds i and the s partitions after it") {
    for (const int s : {2, 3}) CHECK(coding_test::each_held_by(cyclic_mds{}.bind(9, s), s + 1));
}

TEST_CASE("cyclic_mds: invalid arguments are refused") {
    CHECK_THROWS_AS(cyclic_mds{}.bind(5, -1), rill::contract_violation);
    CHECK_THROWS_AS(cyclic_mds{}.bind(5, 5), rill::contract_violation);
    CHECK_THROWS_AS(cyclic_mds{}.bind(2000, 5), rill::contract_violation);
}
