#include <rill/compress/bucket_top_k.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace rill;

TEST_CASE("bucket_top_k sends the largest entries of each bucket") {
    const std::vector<double> input{1, -5, 3, 0, /**/ 0, 0, 0, 0, /**/ 9, 8};
    auto codec = compress::bucket_top_k{.count = 2, .bucket = 4}.bind<double, std::uint64_t>(10);
    const auto view = codec.encode(input);
    CHECK(std::vector(view.indices().begin(), view.indices().end()) == std::vector<std::uint64_t>{1, 2, 4, 5, 8, 9});
    CHECK(std::vector(view.values().begin(), view.values().end()) == std::vector<double>{-5, 3, 0, 0, 9, 8});
}

TEST_CASE("bucket_top_k refuses invalid options, and names the coordinate of a NaN") {
    CHECK_THROWS_AS(compress::bucket_top_k{}.bind(10), contract_violation);
    CHECK_THROWS_AS((compress::bucket_top_k{.count = 1, .bucket = 0}.bind(10)), contract_violation);
    auto codec = compress::bucket_top_k{.count = 1, .bucket = 4}.bind(10);
    std::vector<float> input(10, 1.0F);
    input[9] = NAN;
    CHECK_THROWS_WITH_AS(codec.encode(input), "rill: coordinate 9 is NaN", invalid_value);
}
