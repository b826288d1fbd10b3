#include "laws.hpp"

#include <rill/gradient_code/group_code.hpp>

#include <doctest/doctest.h>

#include <vector>

using rill::gradient_code::group_code;

TEST_CASE("group_code: several partitions to a group") {
    const group_code code(9, 1, 4, 3);
    coding_test::check_laws(code);
    CHECK(code.partitions() == 12);
    CHECK(code.groups() == 4);
    CHECK(code.partitions_of(0)[0] == 0);
    CHECK(code.partitions_of(8)[2] == 11);
}

TEST_CASE("group_code: survivors in any order; the lowest of each group is used") {
    const group_code code(6, 2, 2, 1);
    std::vector<double> row(4);
    code.decoding_row(std::vector{1, 2, 4, 5}, row);
    CHECK(row == std::vector<double>{1, 0, 1, 0});
    code.decoding_row(std::vector{5, 2, 4, 1}, row);
    CHECK(row == std::vector<double>{0, 0, 1, 1});
    CHECK_THROWS_WITH_AS(code.decoding_row(std::vector{5, 2, 5, 1}, row), doctest::Contains("twice"),
                         rill::contract_violation);
    CHECK_THROWS_WITH_AS(code.is_decodable(std::vector{5, 2, 5}), doctest::Contains("twice"), rill::contract_violation);
}

TEST_CASE("group_code: groups that stragglers can remove completely are refused") {
    CHECK_THROWS_WITH_AS(group_code(9, 2, 4, 1), doctest::Contains("the number of groups must be between 1 and"),
                         rill::contract_violation);
    CHECK_THROWS_AS(group_code(9, 2, 0, 1), rill::contract_violation);
    CHECK_THROWS_AS(group_code(9, 2, 3, 0), rill::contract_violation);
}
