#include <doctest/doctest.h>

#include <rill/kernel/select.hpp>

#include "samples.hpp"

#include <string>
#include <vector>

using namespace rill;
using namespace rill::kernel_tests;

TEST_CASE_TEMPLATE("top_k selects as a full sort does", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    kernel::select_scratch scratch;
    for (std::size_t n : {0U, 1U, 2U, 63U, 64U, 65U, 1000U, 2047U, 2048U, 5000U, 20000U})
        for (const auto& [name, x] : samples<T>(n))
            for (std::size_t k : {std::size_t{0}, std::size_t{1}, n / 100, n / 10, n / 2, n - n / 50, n, n + 7}) {
                CAPTURE(name);
                CAPTURE(n);
                CAPTURE(k);
                std::vector<Index> found(std::min(n, k));
                const std::size_t count = kernel::top_k<T, Index>(x, k, found, scratch);
                CHECK(count == found.size());
                CHECK(found == naive_top_k<T, Index>(x, 0, n, k));
            }
}

TEST_CASE_TEMPLATE("the exact fallback agrees with the sampled path", T, float, double, std::int32_t, std::int64_t) {
    for (const auto& [name, x] : samples<T>(3000))
        for (std::size_t k : {1U, 30U, 1500U, 2999U}) {
            CAPTURE(name);
            kernel::select_scratch scratch;
            std::vector<std::uint32_t> found(k);
            const auto at = kernel::detail::cut_by_digits<T>(x, k);
            kernel::detail::emit_cut<T, std::uint32_t>(x, 0, at, k, found.data(), scratch);
            CHECK(found == naive_top_k<T, std::uint32_t>(x, 0, x.size(), k));
        }
}

TEST_CASE("a sample that misses the few large entries falls back") {
    std::vector<float> x(100000, 1.0F);
    for (std::size_t i = 0; i < 40; ++i) x[i * 2500 + 3] = 2.0F + static_cast<float>(i);
    kernel::select_scratch scratch;
    for (std::size_t k : {1U, 39U, 40U, 41U, 5000U}) {
        std::vector<std::uint32_t> found(k);
        kernel::top_k<float, std::uint32_t>(x, k, found, scratch);
        CHECK(found == naive_top_k<float, std::uint32_t>(x, 0, x.size(), k));
    }
}

TEST_CASE_TEMPLATE("a NaN is an error that names the lowest coordinate", T, float, double) {
    kernel::select_scratch scratch;
    for (std::size_t n : {10U, 3000U, 40000U})
        for (const auto& [name, values] : samples<T>(n))
            for (std::size_t k : {std::size_t{0}, std::size_t{1}, n / 10, n})
                for (std::size_t nans : {1U, 5U}) {
                    auto x = values;
                    for (std::size_t i = 0; i < nans; ++i) {
                        x[n - 1 - i] = std::numeric_limits<T>::quiet_NaN();
                        if (i % 2 == 1) x[n - 1 - i] = -x[n - 1 - i];
                    }
                    std::vector<std::uint32_t> found(k);
                    const std::string expected = "rill: coordinate " + std::to_string(n - nans) + " is NaN";
                    CAPTURE(name);
                    CHECK_THROWS_WITH_AS((kernel::top_k<T, std::uint32_t>(x, k, found, scratch)), expected.c_str(),
                                         invalid_value);
                }
}

TEST_CASE("a vector of nothing but NaN is refused as well") {
    std::vector<float> x(5000, std::numeric_limits<float>::quiet_NaN());
    kernel::select_scratch scratch;
    std::vector<std::uint32_t> found(10);
    CHECK_THROWS_WITH_AS((kernel::top_k<float, std::uint32_t>(x, 10, found, scratch)), "rill: coordinate 0 is NaN",
                         invalid_value);
}

TEST_CASE("selection allocates once") {
    kernel::select_scratch scratch;
    std::vector<std::uint32_t> found(400);
    const auto x = samples<float>(20000);
    kernel::top_k<float, std::uint32_t>(x[0].values, 400, found, scratch);
    const void* const where[] = {scratch.indices.data(), scratch.keys.data(), scratch.middle.data(),
                                 scratch.ties.data()};
    kernel::top_k<float, std::uint32_t>(x[1].values, 400, found, scratch);
    CHECK(where[0] == scratch.indices.data());
    CHECK(where[1] == scratch.keys.data());
    CHECK(where[2] == scratch.middle.data());
    CHECK(where[3] == scratch.ties.data());
}

TEST_CASE("too little room for the result is a broken contract") {
    kernel::select_scratch scratch;
    std::vector<float> x(10, 1.0F);
    std::vector<std::uint32_t> found(3);
    CHECK_THROWS_AS((kernel::top_k<float, std::uint32_t>(x, 4, found, scratch)), contract_violation);
    CHECK_THROWS_AS((kernel::gather<float, std::uint32_t>(x, found, {})), contract_violation);
}

TEST_CASE("gather takes the values at the indices") {
    const std::vector<double> x{1, 2, 3, 4};
    const std::vector<std::uint64_t> indices{0, 2, 3};
    std::vector<double> values(3);
    kernel::gather<double, std::uint64_t>(x, indices, values);
    CHECK(values == std::vector<double>{1, 3, 4});
}
