#include "laws.hpp"

#include <rill/core/fingerprint.hpp>
#include <rill/gradient_code/fractional_repetition.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using rill::gradient_code::fractional_repetition;

TEST_CASE("fractional_repetition: the laws of gradient codes") {
    for (const auto& [n, s] : {std::pair{12, 3}, {12, 0}, {6, 1}, {6, 5}, {1, 0}, {30, 4}})
        coding_test::check_laws(fractional_repetition{}.bind(n, s));
}

TEST_CASE("fractional_repetition: s+1 workers hold the same s+1 of n partitions") {
    const auto code = fractional_repetition{}.bind(12, 3);
    CHECK(code.partitions() == 12);
    CHECK(coding_test::each_held_by(code, 4));
    for (int worker = 0; worker < 12; ++worker) {
        CHECK(code.partitions_of(worker).front() == worker / 4 * 4);
        CHECK(code.coefficients_of(worker)[3] == 1);
    }
    CHECK(amplification(code) == rill::gradient_code::amplification_report{.worst = 1, .median = 1, .sets = 220});
}

TEST_CASE("fractional_repetition: decodes with nine workers lost if one of each group is left") {
    const auto code = fractional_repetition{}.bind(12, 3);
    std::vector<double> row(4);
    code.decoding_row(std::vector{11, 3, 6, 5}, row);
    CHECK(row == std::vector<double>{1, 1, 0, 1});
    CHECK_FALSE(code.is_decodable(std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
    row.resize(2);
    CHECK(code.approximate_row(std::vector{0, 8}, row) == 2);  // four partitions are missing
    CHECK(row == std::vector<double>{1, 1});
}

TEST_CASE("fractional_repetition: invalid arguments are refused") {
    CHECK_THROWS_WITH_AS(fractional_repetition{}.bind(12, 4), doctest::Contains("does not divide"),
                         rill::contract_violation);
    CHECK_THROWS_WITH_AS(fractional_repetition{}.bind(12, -1), doctest::Contains("fewer than the workers"),
                         rill::contract_violation);
    CHECK_THROWS_AS(fractional_repetition{}.bind(12, 12), rill::contract_violation);
    CHECK_THROWS_AS(fractional_repetition{}.bind(0, 0), rill::contract_violation);
    CHECK(fractional_repetition{} == fractional_repetition{});
    CHECK(rill::fingerprint(fractional_repetition{}) == rill::fingerprint("fractional_repetition"));
}
