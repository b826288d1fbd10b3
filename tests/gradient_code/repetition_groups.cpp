#include "laws.hpp"

#include <rill/gradient_code/repetition_groups.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using rill::gradient_code::repetition_groups;

TEST_CASE("repetition_groups: the laws of gradient codes") {
    for (const auto& [n, s] : {std::pair{12, 4}, {11, 2}, {7, 3}, {7, 6}, {5, 0}, {1, 0}})
        coding_test::check_laws(repetition_groups{}.bind(n, s));
}

TEST_CASE("repetition_groups: group sizes differ by at most one worker") {
    const auto code = repetition_groups{}.bind(156, 39);
    CHECK(code.partitions() == 3);
    CHECK(coding_test::each_held_by(code, 52));
    const auto odd = repetition_groups{}.bind(11, 2);
    CHECK(odd.groups() == 3);
    std::vector<int> sizes(3);
    for (int worker = 0; worker < 11; ++worker) ++sizes[static_cast<std::size_t>(odd.group_of(worker))];
    CHECK(sizes == std::vector{3, 4, 4});
    CHECK(amplification(odd).worst == 1);
}

TEST_CASE("repetition_groups: invalid arguments are refused") {
    CHECK_THROWS_AS(repetition_groups{}.bind(5, -1), rill::contract_violation);
    CHECK_THROWS_WITH_AS(repetition_groups{}.bind(5, 5), doctest::Contains("fewer than the workers"),
                         rill::contract_violation);
    CHECK_THROWS_AS(repetition_groups{}.bind(5, 1).partitions_of(5), rill::contract_violation);
    CHECK_THROWS_AS(repetition_groups{}.bind(5, 1).coefficients_of(-1), rill::contract_violation);
}
