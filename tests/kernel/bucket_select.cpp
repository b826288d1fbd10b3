#include <doctest/doctest.h>

#include <rill/kernel/bucket_select.hpp>

#include "samples.hpp"

using namespace rill;
using namespace rill::kernel_tests;

TEST_CASE_TEMPLATE("bucket_top_k selects in each bucket as a full sort does", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    kernel::select_scratch scratch;
    for (std::size_t n : {0U, 1U, 65U, 1000U, 1537U, 20000U})
        for (const auto& [name, x] : samples<T>(n))
            for (std::size_t bucket : {1U, 3U, 64U, 512U, 9000U})
                for (std::size_t k : {std::size_t{0}, std::size_t{1}, bucket / 2, bucket, bucket + 1}) {
                    if (n == 20000 && bucket < 512) continue;
                    CAPTURE(name);
                    CAPTURE(n);
                    CAPTURE(bucket);
                    CAPTURE(k);
                    std::vector<Index> expected;
                    for (std::size_t first = 0; first < n; first += bucket)
                        for (Index i : naive_top_k<T, Index>(x, first, std::min(n, first + bucket), k))
                            expected.push_back(i);
                    CHECK(kernel::bucket_top_k_count(n, bucket, k) == expected.size());
                    std::vector<Index> found(expected.size());
                    CHECK(kernel::bucket_top_k<T, Index>(x, bucket, k, found, scratch) == expected.size());
                    CHECK(found == expected);
                }
}

TEST_CASE("a NaN in a bucket is an error that names the coordinate") {
    kernel::select_scratch scratch;
    std::vector<float> x(2000, 1.0F);
    std::vector<std::uint32_t> found(2000);
    for (std::size_t at : {0U, 511U, 1999U})
        for (std::size_t k : {0U, 4U, 512U}) {
            auto with_nan = x;
            with_nan[at] = std::numeric_limits<float>::quiet_NaN();
            const std::string expected = "rill: coordinate " + std::to_string(at) + " is NaN";
            CHECK_THROWS_WITH_AS((kernel::bucket_top_k<float, std::uint32_t>(with_nan, 512, k, found, scratch)),
                                 expected.c_str(), invalid_value);
        }
}
