#include <doctest/doctest.h>

#include <rill/kernel/scatter.hpp>

#include "samples.hpp"

using namespace rill;
using namespace rill::kernel_tests;

TEST_CASE_TEMPLATE("scatter assigns and folds at the indices", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    constexpr std::size_t offset = 1000;
    for (std::size_t n : {1U, 100U, 300000U})  // the last one is prefetched
        for (std::size_t step : {1U, 3U, 97U}) {
            std::vector<Index> indices;
            std::vector<T> values;
            std::vector<T> assigned(n, T{5}), folded(n, T{5}), expected_assigned = assigned, expected_folded = folded;
            for (std::size_t i = step - 1; i < n; i += step) {
                indices.push_back(static_cast<Index>(i + offset));
                values.push_back(static_cast<T>(i % 11));
                expected_assigned[i] = values.back();
                expected_folded[i] = static_cast<T>(T{5} - values.back());
            }
            const sparse_view<T, Index> x{indices, values};
            kernel::scatter_assign<T, Index>(x, offset, assigned);
            kernel::scatter_fold<T, Index>(x, offset, folded, [](T a, T b) { return static_cast<T>(a - b); });
            CHECK(assigned == expected_assigned);
            CHECK(folded == expected_folded);
        }
}

TEST_CASE("an index outside of the dense vector is a broken contract") {
    const std::vector<std::uint32_t> indices{10, 14};
    const std::vector<float> values{1, 2};
    std::vector<float> dense(5);
    const sparse_view<float, std::uint32_t> x{indices, values};
    CHECK_NOTHROW(kernel::scatter_assign<float, std::uint32_t>(x, 10, dense));
    CHECK_THROWS_AS((kernel::scatter_assign<float, std::uint32_t>(x, 9, dense)), contract_violation);
    CHECK_THROWS_AS((kernel::scatter_assign<float, std::uint32_t>(x, 11, dense)), contract_violation);
}
