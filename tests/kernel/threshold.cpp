#include <doctest/doctest.h>

#include <rill/kernel/threshold.hpp>

#include "samples.hpp"

using namespace rill;
using namespace rill::kernel_tests;

TEST_CASE_TEMPLATE("threshold keeps every magnitude that reaches the limit", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    aligned_vector<Index> found(3);
    for (std::size_t n : {0U, 1U, 63U, 64U, 65U, 1000U})
        for (const auto& [name, x] : samples<T>(n))
            for (T limit : {T{0}, T{1}, T{2}, static_cast<T>(300000000), std::numeric_limits<T>::max()}) {
                std::vector<Index> expected;
                for (std::size_t i = 0; i < n; ++i)
                    if (kernel::magnitude(x[i]) >= kernel::magnitude(limit)) expected.push_back(static_cast<Index>(i));
                CAPTURE(name);
                CHECK(kernel::threshold<T, Index>(x, limit, found) == expected.size());
                CHECK(std::vector<Index>(found.begin(), found.end()) == expected);
            }
}

TEST_CASE("threshold refuses NaN, in the input and as a limit") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    aligned_vector<std::uint32_t> found;
    for (std::size_t n : {70U, 128U, 500U}) {
        std::vector<float> x(n, 0.5F);
        x[65] = nan;
        x[n - 1] = nan;
        CHECK_THROWS_WITH_AS((kernel::threshold<float, std::uint32_t>(x, 1.0F, found)), "rill: coordinate 65 is NaN",
                             invalid_value);
        CHECK_THROWS_AS((kernel::threshold<float, std::uint32_t>(x, nan, found)), contract_violation);
        CHECK_THROWS_AS((kernel::threshold<float, std::uint32_t>(x, -1.0F, found)), contract_violation);
    }
}
