#include "laws.hpp"

#include <rill/core/fingerprint.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>

#include <doctest/doctest.h>

#include <utility>

using rill::gradient_code::amplification;
using rill::gradient_code::cyclic_repetition;

TEST_CASE("cyclic_repetition: the laws of gradient codes") {
    for (const auto& [n, s] : {std::pair{12, 3}, {7, 2}, {5, 0}, {4, 3}, {3, 1}, {1, 0}, {24, 5}})
        coding_test::check_laws(cyclic_repetition{}.bind(n, s), 50);
}

TEST_CASE("cyclic_repetition: worker i holds i and the s partitions after it") {
    const auto code = cyclic_repetition{}.bind(7, 2);
    CHECK(coding_test::each_held_by(code, 3));
    CHECK(code.partitions_of(6)[0] == 0);
    CHECK(code.partitions_of(6)[1] == 1);
    CHECK(code.partitions_of(6)[2] == 6);
    CHECK(code.coefficients_of(6)[2] == 1);
}

TEST_CASE("cyclic_repetition: a code is a function of its seed, and the best of several draws is better") {
    const auto plain = amplification(cyclic_repetition{}.bind(8, 3));
    CHECK(plain == amplification(cyclic_repetition{}.bind(8, 3)));
    CHECK(plain.worst != amplification(cyclic_repetition{.seed = 2}.bind(8, 3)).worst);
    const auto searched = amplification(cyclic_repetition{.draws = 8}.bind(8, 3));
    CHECK(searched.worst <= plain.worst);
    CHECK(searched.worst < 100);
    CHECK(plain.worst > 100);
}

TEST_CASE("cyclic_repetition: invalid arguments are refused") {
    CHECK_THROWS_AS(cyclic_repetition{}.bind(5, -1), rill::contract_violation);
    CHECK_THROWS_AS(cyclic_repetition{}.bind(5, 5), rill::contract_violation);
    CHECK_THROWS_WITH_AS(cyclic_repetition{.draws = 0}.bind(5, 1), doctest::Contains("draw"), rill::contract_violation);
    CHECK(rill::fingerprint(cyclic_repetition{.seed = 1}) != rill::fingerprint(cyclic_repetition{.seed = 2}));
}
