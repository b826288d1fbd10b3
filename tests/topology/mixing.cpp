// The shipped mixings: laws, rows by their formulas, and how fast they bring models together.
#include <rill/testing/mixing_laws.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/eigenvalues_above.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/mixing_rate.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/topology/verify_mixing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <set>
#include <vector>

namespace mixing_cases {

using namespace rill;
using topology::directed;
using topology::exponential;
using topology::metropolis;
using topology::random_matching;
using topology::ring_neighbours;
using topology::rotating;

static_assert(topology::mixes_doubly(ring_neighbours{}, 17) && topology::connects(ring_neighbours{}, 17, 1));
static_assert(topology::mixes_doubly(exponential{}, 17) && topology::connects(exponential{}, 17, 5));
static_assert(topology::mixes_doubly(rotating{}, 8) && topology::connects(rotating{}, 8, 3));
static_assert(topology::connects(rotating{}, 17, 10));
static_assert(topology::mixes_doubly(random_matching{}, 17));
static_assert(topology::mixes_doubly(metropolis{{{0, 1}, {1, 2}, {1, 3}}}, 4));
static_assert(!topology::connects(metropolis{{{0, 1}, {2, 3}}}, 4, 3));

const std::array sizes{1, 2, 3, 4, 5, 8, 17, 32, 300};

template <class M>
void keeps_laws(const M& mixing, const std::vector<int>& of) {
    int laws = 0;
    testing::for_each_mixing_law(mixing, of, [&](const char* name, const testing::law_outcome& outcome) {
        CAPTURE(name);
        CHECK_MESSAGE(outcome.held, outcome.what);
        ++laws;
    });
    CHECK(laws == 2);
}
template <class M>
void keeps_laws(const M& mixing) {
    keeps_laws(mixing, {sizes.begin(), sizes.end()});
}

metropolis grid(int rows, int columns) {
    metropolis made;
    for (rank_t rank = 0; rank < rows * columns; ++rank) {
        if (rank % columns + 1 < columns) made.edges.push_back({rank, rank + 1});
        if (rank + columns < rows * columns) made.edges.push_back({rank, rank + columns});
    }
    return made;
}

/// Models of one number each, after the mixing's rounds [from, to).
template <class M>
std::vector<double> mixed(const M& mixing, std::vector<double> models, std::uint64_t from, std::uint64_t to) {
    const int size = static_cast<int>(models.size());
    auto bound = mixing.bind(size, random_key{3});
    mixing_row row;
    for (std::uint64_t round = from; round < to; ++round) {
        std::vector<double> next(models.size());
        for (rank_t rank = 0; rank < size; ++rank) {
            bound.fill(round, rank, row);
            double& own = next[static_cast<std::size_t>(rank)];
            own = row.own_weight * models[static_cast<std::size_t>(rank)];
            for (const mixing_end& each : row.senders) own += each.weight * models[static_cast<std::size_t>(each.peer)];
        }
        models = next;
    }
    return models;
}

TEST_CASE("mixing: the shipped ones keep the laws") {
    keeps_laws(ring_neighbours{});
    keeps_laws(exponential{});
    keeps_laws(rotating{});
    keeps_laws(random_matching{});
    keeps_laws(metropolis{}, {1, 2, 7});
    keeps_laws(directed{}, {1, 2, 7});
    keeps_laws(directed{{{0, 1}, {1, 2}, {2, 0}, {0, 2}, {2, 1}}}, {3, 4});
    keeps_laws(grid(4, 5), {20, 21});
}

TEST_CASE("mixing: rounds that connect all ranks") {
    for (const int size : {2, 3, 5, 8, 17, 64}) {
        CAPTURE(size);
        std::uint64_t levels = 0;
        while (1 << levels < size) ++levels;
        CHECK(topology::connects(exponential{}, size, levels));
        // Hops of 2 and more keep even and odd ranks apart, unless their number is odd.
        if (levels > 1) CHECK(topology::connects(exponential{}, size, levels - 1) == (size % 2 != 0));
        CHECK(topology::connects(ring_neighbours{}, size, 1));
    }
}

TEST_CASE("exponential: after log2 P rounds each model is the mean, exactly") {
    for (const int size : {2, 4, 8, 32}) {
        std::vector<double> models(static_cast<std::size_t>(size));
        for (std::size_t i = 0; i < models.size(); ++i) models[i] = static_cast<double>(i * i);
        double mean = 0;
        for (const double each : models) mean += each / size;
        std::uint64_t levels = 0;
        while (1 << levels < size) ++levels;
        CHECK(mixed(exponential{}, models, 0, levels) == std::vector<double>(models.size(), mean));
        CHECK(mixed(rotating{}, models, levels, 2 * levels) == std::vector<double>(models.size(), mean));
        CHECK(mixed(exponential{}, models, 0, levels - 1) != std::vector<double>(models.size(), mean));
    }
}

TEST_CASE("rotating, random_matching: partners change, and each other rank becomes one") {
    const int size = 9;
    auto turns = rotating{}.bind(size, random_key{1});
    auto pairs = random_matching{}.bind(size, random_key{1});
    std::vector<std::set<rank_t>> met(size), matched(size);
    std::vector<int> alone(size);
    mixing_row row;
    for (std::uint64_t round = 0; round < 400; ++round)
        for (rank_t rank = 0; rank < size; ++rank) {
            turns.fill(round, rank, row);
            for (const rank_t each : row.receivers) met[static_cast<std::size_t>(rank)].insert(each);
            pairs.fill(round, rank, row);
            if (row.receivers.empty()) ++alone[static_cast<std::size_t>(rank)];
            for (const rank_t each : row.receivers) matched[static_cast<std::size_t>(rank)].insert(each);
        }
    for (std::size_t rank = 0; rank < size; ++rank) {
        CHECK(met[rank].size() == size - 1);
        CHECK(matched[rank].size() == size - 1);
        CHECK(alone[rank] > 20);  // 44 on average
        CHECK(alone[rank] < 80);
    }
}

TEST_CASE("mixing: other keys draw other partners") {
    mixing_row one, other;
    int alike = 0;
    for (std::uint64_t round = 0; round < 100; ++round) {
        random_matching{}.bind(64, random_key{1}).fill(round, 0, one);
        random_matching{}.bind(64, random_key{2}).fill(round, 0, other);
        alike += one == other ? 1 : 0;
    }
    CHECK(alike < 10);
}

TEST_CASE("ring_neighbours: a rank's own weight can be chosen") {
    mixing_row row;
    ring_neighbours{.own = 0.5}.bind(5, {}).fill(0, 1, row);
    CHECK(row == mixing_row{.own_weight = 0.5, .senders = {{0, 0.25}, {2, 0.25}}, .receivers = {0, 2}});
    keeps_laws(ring_neighbours{.own = 0.5}, {1, 2, 3, 4, 17});
    keeps_laws(ring_neighbours{.own = 0}, {1, 2, 3, 8});
    CHECK_THROWS_AS((void)ring_neighbours{.own = 1}.bind(4, {}), contract_violation);
    CHECK_THROWS_AS((void)ring_neighbours{.own = -0.1}.bind(4, {}), contract_violation);
}

TEST_CASE("eigenvalues_above: finds the smallest eigenvalue of rings and grids") {
    for (const int size : {3, 4, 5, 8, 33, 300})
        for (const double own : {1.0 / 3, 0.5, 0.2}) {
            double least = 1;
            for (int k = 0; k < size; ++k)
                least = std::min(least, own + (1 - own) * std::cos(2 * std::numbers::pi * k / size));
            const ring_neighbours ring{.own = own};
            CHECK(topology::eigenvalues_above(ring, size, least - 1e-9));
            CHECK(!topology::eigenvalues_above(ring, size, least + 1e-9));
        }
    CHECK(!topology::eigenvalues_above(ring_neighbours{}, 4, -1.0 / 3));  // it is -1/3
    CHECK(topology::eigenvalues_above(grid(3, 4), 12, -1));
    CHECK(!topology::eigenvalues_above(grid(3, 4), 12, 0.5));
    CHECK(topology::eigenvalues_above(metropolis{}, 3, 0.99));
    CHECK(topology::eigenvalues_above(ring_neighbours{}, 2, -0.01));
}

TEST_CASE("metropolis: weights are 1 over 1 plus the higher degree") {
    auto star = metropolis{{{2, 0}, {1, 0}, {0, 3}}}.bind(5, {});
    mixing_row row;
    star.fill(0, 0, row);
    CHECK(row.senders == std::vector<mixing_end>{{1, 0.25}, {2, 0.25}, {3, 0.25}});
    CHECK(row.receivers == std::vector<rank_t>{1, 2, 3});
    CHECK(row.own_weight == 0.25);
    star.fill(9, 3, row);
    CHECK(row.senders == std::vector<mixing_end>{{0, 0.25}});
    CHECK(row.own_weight == 0.75);
    star.fill(9, 4, row);
    CHECK(row == mixing_row{});
}

TEST_CASE("directed: a rank gives each receiver as much as it keeps") {
    auto bound = directed{{{0, 2}, {2, 1}, {0, 1}, {1, 0}}}.bind(4, {});
    mixing_row row;
    bound.fill(5, 1, row);
    CHECK(row.own_weight == 0.5);
    CHECK(row.receivers == std::vector<rank_t>{0});
    CHECK(row.senders == std::vector<mixing_end>{{0, 1.0 / 3}, {2, 0.5}});
    bound.fill(0, 3, row);
    CHECK(row == mixing_row{});
    CHECK(!topology::mixes_doubly(directed{{{0, 2}, {2, 1}, {0, 1}, {1, 0}}}, 4));
    CHECK(topology::connects(directed{{{0, 1}, {1, 2}, {2, 0}}}, 3, 1));
    CHECK(!topology::connects(directed{{{0, 1}, {0, 2}}}, 3, 4));
}

TEST_CASE("directed: graphs that are none are refused") {
    const auto refused = [](std::vector<std::array<rank_t, 2>> edges, const char* why) {
        CHECK_THROWS_WITH_AS((void)(directed{std::move(edges)}.bind(4, {})), doctest::Contains(why),
                             contract_violation);
    };
    refused({{0, 4}}, "outside");
    refused({{-1, 2}}, "outside");
    refused({{3, 3}}, "to itself");
    refused({{1, 2}, {2, 1}, {1, 2}}, "twice");
}

TEST_CASE("metropolis: graphs that are none are refused") {
    const auto refused = [](std::vector<std::array<rank_t, 2>> edges, const char* why) {
        CHECK_THROWS_WITH_AS((void)(metropolis{std::move(edges)}.bind(4, {})), doctest::Contains(why),
                             contract_violation);
    };
    refused({{0, 4}}, "outside");
    refused({{-1, 2}}, "outside");
    refused({{2, 2}}, "itself");
    refused({{0, 1}, {0, 1}}, "twice");
    refused({{0, 1}, {1, 0}}, "twice");
    CHECK_THROWS_AS((void)ring_neighbours{}.bind(0, {}), contract_violation);
    CHECK_THROWS_AS((void)random_matching::bind(-3, {}), contract_violation);
}

TEST_CASE("mixing_rate: is the second eigenvalue") {
    for (const int size : {3, 8, 32}) {
        const double edge = (1 + 2 * std::cos(2 * std::numbers::pi / size)) / 3;
        CHECK(topology::mixing_rate(ring_neighbours{}, size, 1) == doctest::Approx(edge * edge).epsilon(1e-9));
    }
    CHECK(topology::mixing_rate(ring_neighbours{}, 1, 1) == 0);
    CHECK(topology::mixing_rate(ring_neighbours{}, 2, 1) == doctest::Approx(0).epsilon(1e-12));
    CHECK(topology::mixing_rate(metropolis{{{0, 1}, {2, 3}}}, 4, 3) == doctest::Approx(1).epsilon(1e-9));
    // Weights that differ. Many equal rounds, which are added up, are one.
    const metropolis tree{{{0, 1}, {0, 2}, {0, 3}, {3, 4}, {4, 5}}};
    const double once = topology::mixing_rate(tree, 6, 1);
    CHECK(once > 0.1);
    CHECK(once < 0.99);
    CHECK(topology::mixing_rate(tree, 6, 20) == doctest::Approx(once).epsilon(1e-9));
    // A matching halves every direction with probability 1/(n-1) less; 5,000 rounds come near to the expectation.
    CHECK(topology::mixing_rate(random_matching{}, 8, 5000) == doctest::Approx(0.5 * (1 - 1.0 / 7)).epsilon(0.1));
}

TEST_CASE("random_matching: of an odd number all rest in turn") {
    const int size = 7;
    auto bound = topology::random_matching{}.bind(size, rill::random_key{5});
    rill::mixing_row row;
    std::vector<rill::rank_t> rested;
    for (std::uint64_t round = 0; round < 3 * size; ++round)
        for (rill::rank_t rank = 0; rank < size; ++rank) {
            bound.fill(round, rank, row);
            if (row.senders.empty()) rested.push_back(rank);
        }
    REQUIRE(rested.size() == 3 * size);
    CHECK(std::is_permutation(rested.begin(), rested.begin() + size, std::vector{0, 1, 2, 3, 4, 5, 6}.begin()));
    CHECK(std::equal(rested.begin(), rested.end() - size, rested.begin() + size));
}

}  // namespace mixing_cases
