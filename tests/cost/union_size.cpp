#include <rill/cost/union_size.hpp>

#include <rill/core/random.hpp>
#include <rill/cost/selection_frequency.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using namespace rill;

/// The measured size of the union over `ranks` ranks, each of which has coordinate i with probability `chance(i)`.
template <class Chance>
std::vector<std::vector<std::uint32_t>> draw(int ranks, std::size_t dimension, std::uint64_t seed, Chance chance) {
    std::vector<std::vector<std::uint32_t>> all(static_cast<std::size_t>(ranks));
    random_sequence random(random_key{seed});
    for (auto& chosen : all)
        for (std::size_t i = 0; i < dimension; ++i)
            if (static_cast<double>(random.uniform()) < chance(i)) chosen.push_back(static_cast<std::uint32_t>(i));
    return all;
}

double united(const std::vector<std::vector<std::uint32_t>>& all, segment range) {
    std::vector<char> seen(range.end, 0);
    for (const auto& chosen : all)
        for (const std::uint32_t i : chosen)
            if (range.contains(i)) seen[i] = 1;
    double count = 0;
    for (const char c : seen) count += c;
    return count;
}

}  // namespace

TEST_CASE("uniform density: N (1 - (1 - d)^k)") {
    CHECK(cost::uniform_density{0.5}({0, 64}, 1) == doctest::Approx(32));
    CHECK(cost::uniform_density{0.5}({0, 64}, 3) == doctest::Approx(56));
    CHECK(cost::uniform_density{1}({10, 20}, 2) == 10);
    CHECK(cost::uniform_density{0}({10, 20}, 2) == 0);
    CHECK(cost::uniform_density{1e-12}({0, 1'000'000}, 1) == doctest::Approx(1e-6));
    const auto all = draw(8, 50'000, 3, [](std::size_t) { return 0.05; });
    CHECK(cost::uniform_density{0.05}({0, 50'000}, 8) == doctest::Approx(united(all, {0, 50'000})).epsilon(0.02));
}

TEST_CASE("measured frequencies show where gradients are large, and so that unions are smaller") {
    const auto chance = [](std::size_t i) { return i < 5'000 ? 0.5 : 0.005; };
    cost::selection_frequency measured(50'000, 500);
    for (const auto& chosen : draw(4, 50'000, 1, chance)) measured.add(std::span<const std::uint32_t>(chosen));
    CHECK(measured.selections() == 4);
    CHECK(measured.density() == doctest::Approx((2'500 + 225) / 50'000.0).epsilon(0.03));
    const auto others = draw(8, 50'000, 2, chance);
    for (const segment range : {segment{0, 50'000}, segment{4'321, 5'678}})
        CHECK(measured(range, 8) == doctest::Approx(united(others, range)).epsilon(0.06));
    CHECK(measured({0, 50'000}, 8) < 0.8 * cost::uniform_density{measured.density()}({0, 50'000}, 8));
}

TEST_CASE("frequencies given by hand: parts of buckets, and a shorter last bucket") {
    cost::selection_frequency measured(10, 4);
    CHECK(measured({0, 10}, 3) == 0);
    const std::vector<std::uint32_t> selected{0, 3, 9};
    measured.add(std::span<const std::uint32_t>(selected));
    CHECK(measured({0, 4}, 1) == doctest::Approx(2));
    CHECK(measured({1, 2}, 1) == doctest::Approx(0.5));
    CHECK(measured({3, 9}, 1) == doctest::Approx(0.5 + 0.5));
    CHECK(measured({0, 10}, 2) == doctest::Approx(3 + 1.5));
    measured.add(std::span<const std::uint32_t>{});
    CHECK(measured({0, 4}, 1) == doctest::Approx(1));
    CHECK(measured.density() == doctest::Approx(0.15));
}

TEST_CASE("shared support: the union of all ranks is the one that was measured, and that of fewer lies between") {
    const segment all{0, 100'000};
    for (const double growth : {1.0, 2.5, 5.0}) {
        const auto supports = cost::shared_support::of(0.01, 8, growth);
        CHECK(supports(all, 8) == doctest::Approx(growth * 1000).epsilon(1e-6));
        CHECK(supports(all, 1) == doctest::Approx(1000).epsilon(1e-6));
        CHECK(supports(all, 4) <= supports(all, 8));
        CHECK(supports({0, 50'000}, 4) == doctest::Approx(supports(all, 4) / 2));
    }
    const double random = cost::uniform_density{0.01}(all, 8);
    CHECK(cost::shared_support{.density = 0.01}(all, 8) == random);
    CHECK(cost::shared_support::of(0.01, 8, 8)(all, 8) == doctest::Approx(random));  // no more than random ones
    CHECK(cost::shared_support::of(0, 8, 3)(all, 8) == 0);
    CHECK_THROWS_AS(cost::shared_support::of(0.01, 8, 9), contract_violation);
    CHECK_THROWS_AS(cost::shared_support::of(0.01, 8, 0.5), contract_violation);
    for (const cost::shared_support wrong :
         {cost::shared_support{.density = 5}, cost::shared_support{.density = -1},
          cost::shared_support{.density = 0.1, .share = 0.05}, cost::shared_support{.density = 0.1, .share = 2}})
        CHECK_THROWS_AS(wrong(all, 8), contract_violation);
}
