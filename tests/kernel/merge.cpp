#include <doctest/doctest.h>

#include <rill/kernel/merge.hpp>

#include "samples.hpp"
#include "sparse_samples.hpp"

using namespace rill;
using namespace rill::kernel_tests;

TEST_CASE_TEMPLATE("merge is the union, with the left value first in the fold", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    std::vector<sparse<T, Index>> all{{}, {{7}, {T{3}}}, {{2000}, {T{3}}}};
    for (float density : {0.002F, 0.01F, 0.3F, 1.0F}) {
        all.push_back(random_sparse<T, Index>(1, 0, 2000, density));
        all.push_back(random_sparse<T, Index>(2, 500, 900, density));
        all.push_back(random_sparse<T, Index>(3, 2000, 2600, density));
    }
    for (const auto& a : all)
        for (const auto& b : all) {
            sparse<T, Index> out{std::vector<Index>(a.indices.size() + b.indices.size()), {}};
            out.values.resize(out.indices.size());
            const auto count = kernel::merge<T, Index>(a.view(), b.view(), out.indices, out.values, left_heavy);
            out.indices.resize(count);
            out.values.resize(count);
            CHECK(out == naive_merge<T, Index>({a, b}, left_heavy));
        }
}

TEST_CASE("merge reaches the highest index") {
    const std::vector<std::uint64_t> indices{~std::uint64_t{0}};
    const std::vector<float> values{1};
    const sparse_view<float, std::uint64_t> x{indices, values};
    std::vector<std::uint64_t> out(2);
    std::vector<float> sums(2);
    CHECK(kernel::merge<float, std::uint64_t>(x, x, out, sums, [](float a, float b) { return a + b; }) == 1);
    CHECK(out[0] == ~std::uint64_t{0});
    CHECK(sums[0] == 2);
}

TEST_CASE("too little room for a merge is a broken contract") {
    const std::vector<std::uint32_t> indices{1, 2};
    const std::vector<float> values{1, 2};
    const sparse_view<float, std::uint32_t> x{indices, values};
    std::vector<std::uint32_t> out(3);
    std::vector<float> sums(3);
    CHECK_THROWS_AS((kernel::merge<float, std::uint32_t>(x, x, out, sums, left_heavy)), contract_violation);
}
