#include <rill/core/view.hpp>
#include <rill/train/sampler.hpp>
#include <rill/train/shares.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

constexpr std::size_t rows = 53, batch = 12;

/// What the members take together in a step, in their order.
std::vector<std::uint32_t> of_all(const view& crew, std::uint64_t step) {
    std::vector<std::uint32_t> all;
    std::size_t least = rows, most = 0;
    for (const rank_t rank : crew.members) {
        shares data({.rows = rows, .batch = batch, .rank = rank, .key = {5}});
        const auto own = share_of(data, crew, step);
        all.insert(all.end(), own.begin(), own.end());
        least = std::min(least, own.size()), most = std::max(most, own.size());
    }
    CHECK(most - least <= 1);
    return all;
}

}  // namespace

TEST_CASE("shares: in every view each row of a step goes to one member") {
    sampler alone({.rows = rows, .batch = batch, .key = {5}});
    const view views[] = {{.epoch = 0, .members = {0, 1, 2, 3}},
                          {.epoch = 1, .members = {0, 2, 3}},
                          {.epoch = 2, .members = {3}},
                          {.epoch = 3, .members = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}}};
    for (std::uint64_t step = 0; step < 11; ++step) {
        const auto next = alone.next();
        const std::vector<std::uint32_t> expected(next.begin(), next.end());
        for (const view& crew : views) CHECK(of_all(crew, step) == expected);
    }
}

TEST_CASE("shares: steps may come in any order") {
    shares one({.rows = rows, .batch = batch, .rank = 1, .key = {5}});
    const view crew{.epoch = 0, .members = {0, 1}};
    CHECK(one.steps_per_epoch() == 4);
    std::vector<std::vector<std::uint32_t>> forward;
    for (std::uint64_t step = 0; step < 9; ++step) {
        const auto own = share_of(one, crew, step);
        forward.emplace_back(own.begin(), own.end());
    }
    for (std::uint64_t step = 9; step-- > 0;) {
        const auto own = share_of(one, crew, step);
        CHECK(std::equal(own.begin(), own.end(), forward[step].begin(), forward[step].end()));
    }
}

TEST_CASE("shares: wrong options and ranks that are no members are errors") {
    CHECK_THROWS_WITH_AS(shares({.rows = 10, .batch = 11}), doctest::Contains("from 1 to 10, the number of rows"),
                         std::exception);
    CHECK_THROWS_AS(shares({.rows = 10, .batch = 0}), std::exception);
    shares data({.rows = 10, .batch = 5, .rank = 2});
    CHECK_THROWS_AS(share_of(data, {.epoch = 0, .members = {0, 1}}, 0), contract_violation);
}
