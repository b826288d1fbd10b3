#include <rill/compress/top_k.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace rill;

namespace {
std::vector<std::uint32_t> chosen(const compress::top_k& policy, const std::vector<float>& input) {
    auto codec = policy.bind(input.size());
    const auto view = codec.encode(input);
    CHECK(view.range() == segment{0, input.size()});
    CHECK_FALSE(view.is_dense());
    for (std::size_t i = 0; i < view.count(); ++i) CHECK(view.values()[i] == input[view.indices()[i]]);
    return {view.indices().begin(), view.indices().end()};
}
using coordinates = std::vector<std::uint32_t>;
}  // namespace

TEST_CASE("top_k sends the entries of largest magnitude, ties by the lower coordinate") {
    const std::vector<float> input{1, -5, 3, 0, 5, -3, 2, 3};
    CHECK(chosen({.count = 1}, input) == coordinates{1});
    CHECK(chosen({.count = 4}, input) == coordinates{1, 2, 4, 5});
    CHECK(chosen({.count = 100}, input) == coordinates{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(chosen({.density = 0.25}, input) == coordinates{1, 4});
    CHECK(chosen({.density = 0.26}, input) == coordinates{1, 2, 4});  // rounded up
    CHECK(chosen({.density = 1}, input).size() == 8);
    CHECK(chosen({.density = 0.25, .count = 1}, input) == coordinates{1});
    CHECK(chosen({.density = 0.01}, {}) == coordinates{});
}

TEST_CASE("top_k refuses invalid options, and names the coordinate of a NaN") {
    CHECK_THROWS_AS(compress::top_k{}.bind(10), contract_violation);
    CHECK_THROWS_AS(compress::top_k{.density = 1.5}.bind(10), contract_violation);
    CHECK_THROWS_AS(compress::top_k{.density = -0.5}.bind(10), contract_violation);
    auto codec = compress::top_k{.count = 2}.bind(10);
    std::vector<float> input(10, 1.0F);
    CHECK_THROWS_AS(codec.encode(std::span<const float>(input).first(9)), contract_violation);
    input[7] = NAN;
    CHECK_THROWS_WITH_AS(codec.encode(input), "rill: coordinate 7 is NaN", invalid_value);
}
