#include <rill/compress/threshold.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace rill;

TEST_CASE("threshold sends the entries that reach the limit") {
    auto codec = compress::threshold{.limit = 3}.bind<std::int32_t>(6);
    const auto indices = [&](const std::vector<std::int32_t>& input) {
        const auto view = codec.encode(input);
        for (std::size_t i = 0; i < view.count(); ++i) CHECK(view.values()[i] == input[view.indices()[i]]);
        return std::vector<std::uint32_t>(view.indices().begin(), view.indices().end());
    };
    CHECK(indices({3, -4, 2, 0, -3, -2}) == std::vector<std::uint32_t>{0, 1, 4});
    CHECK(indices({0, 0, 0, 0, 0, 2}).empty());
    CHECK(indices({9, 9, 9, 9, 9, 9}).size() == 6);
}

TEST_CASE("threshold: a limit of integers is rounded up, and is one of them") {
    auto codec = compress::threshold{.limit = 2.5}.bind<std::int32_t>(3);
    CHECK(codec.encode(std::vector<std::int32_t>{1, -2, -3}).count() == 1);
    CHECK_NOTHROW(compress::threshold{.limit = 2147483647}.bind<std::int32_t>(3));
    CHECK_THROWS_AS(compress::threshold{.limit = 2147483647.5}.bind<std::int32_t>(3), contract_violation);
    CHECK_THROWS_AS(compress::threshold{.limit = 1e300}.bind<std::int64_t>(3), contract_violation);
}

TEST_CASE("threshold refuses an invalid limit, and names the coordinate of a NaN") {
    CHECK_THROWS_AS(compress::threshold{.limit = -1}.bind(10), contract_violation);
    CHECK_THROWS_AS(compress::threshold{.limit = NAN}.bind(10), contract_violation);
    auto codec = compress::threshold{.limit = 1}.bind(100);
    std::vector<float> input(100, 0.0F);
    input[70] = NAN;
    CHECK_THROWS_WITH_AS(codec.encode(input), "rill: coordinate 70 is NaN", invalid_value);
}
