#include "laws.hpp"

#include <rill/gradient_code/given_code.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using rill::gradient_code::given_code;

namespace {
const std::vector<double> example_1{0.5, 1, 0, 0, 1, -1, 0.5, 0, 1};
}

TEST_CASE("given_code: the example of CodedReduce has the decoding rows of the paper") {
    const auto code = given_code(3, 3, 1, example_1);
    coding_test::check_laws(code);
    const auto row = [&](int first, int second) {
        std::vector<double> a(2);
        code.decoding_row(std::vector{first, second}, a);
        return a;
    };
    CHECK(row(1, 2)[0] == doctest::Approx(1).epsilon(1e-14));
    CHECK(row(1, 2)[1] == doctest::Approx(2).epsilon(1e-14));
    CHECK(row(0, 2)[0] == doctest::Approx(1).epsilon(1e-14));
    CHECK(row(0, 2)[1] == doctest::Approx(1).epsilon(1e-14));
    CHECK(row(0, 1)[0] == doctest::Approx(2).epsilon(1e-14));
    CHECK(row(0, 1)[1] == doctest::Approx(-1).epsilon(1e-14));
}

TEST_CASE("given_code: a repetition matrix is decoded with more losses than it promises") {
    const auto code = given_code(4, 2, 1, std::vector<double>{1, 0, 1, 0, 0, 1, 0, 1});
    coding_test::check_laws(code);
    CHECK(code.is_decodable(std::vector{3, 0}));
    CHECK_FALSE(code.is_decodable(std::vector{1, 0}));
}

TEST_CASE("given_code: a matrix that cannot be decoded without its stragglers is refused") {
    CHECK_THROWS_WITH_AS(given_code(2, 2, 1, std::vector<double>{1, 0, 0, 1}),
                         doctest::Contains("cannot be combined to all ones"), rill::contract_violation);
    CHECK_THROWS_WITH_AS(given_code(3, 3, 1, std::vector<double>(8)), doctest::Contains("elements"),
                         rill::contract_violation);
    std::vector<double> broken = example_1;
    broken[4] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_WITH_AS(given_code(3, 3, 1, broken), doctest::Contains("finite"), rill::contract_violation);
    CHECK_THROWS_AS(given_code(3, 3, 3, example_1), rill::contract_violation);
    CHECK_THROWS_AS(given_code(3, 3, -1, example_1), rill::contract_violation);
}
