#include "../support/allocations.hpp"

#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/dual_code.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <thread>
#include <vector>

using namespace rill::gradient_code;

namespace {

std::vector<int> without(int n, int first, int count) {
    std::vector<int> lost, left;
    for (int i = 0; i < count; ++i) lost.push_back((first + i) % n);
    std::ranges::sort(lost);
    detail::complement(lost, n, left);
    return left;
}

std::vector<double> row_of(const dual_code& code, const std::vector<int>& survivors) {
    std::vector<double> row(survivors.size());
    code.decoding_row(survivors, row);
    return row;
}

}  // namespace

TEST_CASE("dual_code: a row that was evicted from the cache is computed again with the same bits") {
    const dual_code code = cyclic_mds{}.bind(40, 3);
    const std::vector<double> first = row_of(code, without(40, 0, 3));
    detail::for_some_subsets(40, 3, 2000, 5, [&](const std::vector<int>& lost) {
        std::vector<int> left;
        detail::complement(lost, 40, left);
        row_of(code, left);
    });
    CHECK(row_of(code, without(40, 0, 3)) == first);
}

#ifndef RILL_TEST_SANITIZED
TEST_CASE("dual_code: a cached row is not solved for again") {
    const dual_code code = cyclic_mds{}.bind(12, 3);
    const std::vector<int> survivors = without(12, 4, 3), too_few = without(12, 4, 4);
    std::vector<double> row(9), closest(8);
    code.decoding_row(survivors, row);
    code.approximate_row(too_few, closest);
    const unsigned long before = allocations();
    code.decoding_row(survivors, row);
    code.approximate_row(too_few, closest);
    CHECK(code.is_decodable(survivors));
    CHECK_FALSE(code.is_decodable(too_few));
    CHECK(allocations() == before);
}
#endif

TEST_CASE("dual_code: threads that share one code, and copies of it, get the same rows") {
    const dual_code code = cyclic_mds{}.bind(24, 4);
    std::vector<std::vector<double>> wanted;
    for (int first = 0; first < 24; ++first) wanted.push_back(row_of(cyclic_mds{}.bind(24, 4), without(24, first, 4)));
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&wrong, &wanted, copy = code, t] {
            for (int round = 0; round < 20; ++round)
                for (int i = 0; i < 24; ++i) {
                    const int first = (i * 7 + t) % 24;
                    if (row_of(copy, without(24, first, 4)) != wanted[static_cast<std::size_t>(first)]) ++wrong;
                }
        });
    threads.clear();
    CHECK(wrong == 0);
}

TEST_CASE("dual_code: too few survivors are refused, or decoded as closely as possible") {
    const dual_code code = cyclic_mds{}.bind(12, 3);
    const std::vector<int> eight = without(12, 2, 4);
    CHECK_FALSE(code.is_decodable(eight));
    CHECK_THROWS_WITH_AS(row_of(code, eight), doctest::Contains("too few workers are left"), rill::contract_violation);
    std::vector<double> row(8);
    const double error = code.approximate_row(eight, row);
    CHECK(error > 0.1);
    CHECK(error < 2);  // only lost workers hold partition 5; the least possible error is 1
    CHECK(any_code(code).approximate_row(eight, row) == error);
    row.resize(7);
    CHECK_THROWS_WITH_AS(code.approximate_row(eight, row), doctest::Contains("one coefficient per survivor"),
                         rill::contract_violation);
}

TEST_CASE("dual_code: fewer survivors than promised decode if their rows allow it") {
    const dual_code code = cyclic_mds{}.bind(6, 1);  // each row has two neighbouring entries
    CHECK(code.is_decodable(std::vector{0, 2, 4}));
    CHECK_FALSE(code.is_decodable(std::vector{0, 2, 3}));
    CHECK_FALSE(code.is_decodable(std::vector{0, 3}));
    for (const double a : row_of(code, {4, 0, 2})) CHECK(a == doctest::Approx(1));
}

TEST_CASE("dual_code: more survivors than needed amplify less") {
    const dual_code code = cyclic_mds{}.bind(12, 5);
    std::vector<int> everyone(12);
    std::iota(everyone.begin(), everyone.end(), 0);
    for (const double a : row_of(code, everyone)) CHECK(a == doctest::Approx(1.0 / 6));
}
