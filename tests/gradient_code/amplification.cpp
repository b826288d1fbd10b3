#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/given_code.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

using namespace rill::gradient_code;

TEST_CASE("amplification: Example 1 of CodedReduce, computed by hand") {
    const dual_code code = given_code(3, 3, 1, std::vector<double>{0.5, 1, 0, 0, 1, -1, 0.5, 0, 1});
    // ‖b‖₁ is 1.5, 2, 1.5; the rows are (1, 2), (1, 1) and (2, -1). Thus the sums are 2 + 3, 1.5 + 1.5 and 3 + 2, each
    // divided by 3 partitions.
    const amplification_report report = amplification(code);
    CHECK(report.worst == doctest::Approx(5.0 / 3));
    CHECK(report.median == doctest::Approx(5.0 / 3));
    CHECK(report.sets == 3);
    CHECK(report.is_exact);
}

TEST_CASE("amplification: samples where there are too many sets, and reports that it did") {
    const dual_code code = given_code(3, 3, 1, std::vector<double>{0.5, 1, 0, 0, 1, -1, 0.5, 0, 1});
    const amplification_report report = amplification(code, {.all_up_to = 2, .samples = 4});
    CHECK_FALSE(report.is_exact);
    CHECK(report.sets == 7);
    CHECK(report.worst == doctest::Approx(5.0 / 3));  // of three workers, all pairs are neighbours
}

TEST_CASE("amplification: enumerates all subsets once each") {
    std::set<std::vector<int>> seen;
    rill::gradient_code::detail::for_each_subset(7, 3, [&](const std::vector<int>& lost) {
        CHECK(std::is_sorted(lost.begin(), lost.end()));
        seen.insert(lost);
    });
    CHECK(seen.size() == 35);
    CHECK(rill::gradient_code::detail::subsets(7, 3, 1000) == 35);
    CHECK(rill::gradient_code::detail::subsets(156, 39, 1000) == 1001);
    CHECK(rill::gradient_code::detail::subsets(5, 0, 1000) == 1);
    std::size_t none = 0;
    rill::gradient_code::detail::for_each_subset(4, 0,
                                                 [&](const std::vector<int>& lost) { none += lost.empty() ? 1 : 100; });
    CHECK(none == 1);
}

TEST_CASE("amplification: random subsets are ascending, distinct workers, and differ") {
    std::set<std::vector<int>> seen;
    rill::gradient_code::detail::for_some_subsets(30, 4, 50, 1, [&](const std::vector<int>& lost) {
        CHECK(lost.size() == 4);
        CHECK(std::is_sorted(lost.begin(), lost.end()));
        CHECK(std::adjacent_find(lost.begin(), lost.end()) == lost.end());
        CHECK(lost.back() < 30);
        seen.insert(lost);
    });
    CHECK(seen.size() == 80);
    CHECK(seen.contains({0, 1, 28, 29}));
    std::vector<int> left;
    rill::gradient_code::detail::complement({0, 2, 3}, 5, left);
    CHECK(left == std::vector{1, 4});
}
