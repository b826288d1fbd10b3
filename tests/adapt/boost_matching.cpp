// Boost.Graph's matching, and the figures of the matching over fast links that uses it.
#include <rill/adapt/boost_matching.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/mixing_rate.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/verify_mixing.hpp>

#include "../support/city_links.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace rill;
using topology::bandwidth_matching;

constexpr random_key key{7};

std::size_t pairs_of(int ranks, const std::vector<std::array<rank_t, 2>>& edges) {
    const auto partners = adapt::boost_matching::match(ranks, edges);
    std::size_t paired = 0;
    REQUIRE(partners.size() == static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < partners.size(); ++i) {
        if (partners[i] == no_rank) continue;
        ++paired;
        CHECK(partners[static_cast<std::size_t>(partners[i])] == static_cast<rank_t>(i));
        const auto self = static_cast<rank_t>(i);
        CHECK(std::count_if(edges.begin(), edges.end(), [&](const auto& edge) {
                  return (edge[0] == self && edge[1] == partners[i]) || (edge[1] == self && edge[0] == partners[i]);
              }) > 0);
    }
    return paired / 2;
}

double slower_way(const std::vector<double>& links, std::size_t size, std::size_t a, std::size_t b) {
    return std::min(links[a * size + b], links[b * size + a]);
}

struct speeds {
    double bottleneck = 0;  ///< of a round, on average
    double seconds = 0;     ///< that the slowest pair takes for a unit of data, on average
};
template <class M>
speeds of_rounds(const M& mixing, int size, const std::vector<double>& links, int rounds) {
    auto bound = mixing.bind(size, key);
    mixing_row row;
    speeds found;
    for (int round = 0; round < rounds; ++round) {
        double slowest = 1e300;
        for (rank_t rank = 0; rank < size; ++rank) {
            bound.fill(static_cast<std::uint64_t>(round), rank, row);
            for (const mixing_end& from : row.senders)
                slowest =
                    std::min(slowest, slower_way(links, static_cast<std::size_t>(size), static_cast<std::size_t>(rank),
                                                 static_cast<std::size_t>(from.peer)));
        }
        found.bottleneck += slowest / rounds;
        found.seconds += 1 / slowest / rounds;
    }
    return found;
}

/// Uniform in (0, 5], both ways alike.
std::vector<double> random_links(std::size_t size) {
    std::vector<double> links(size * size);
    random_sequence random(random_key{0});
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < i; ++j)
            links[i * size + j] = links[j * size + i] = 5 * (1 - static_cast<double>(random.uniform()));
    return links;
}

/// The mean bottleneck of rings in random order.
double ring_bottleneck(const std::vector<double>& links, int size, int rings) {
    topology::detail::shuffled_ranks order(size, key);
    double sum = 0;
    for (int ring = 0; ring < rings; ++ring) {
        order.choose(static_cast<std::uint64_t>(ring));
        double slowest = 1e300;
        for (int place = 0; place < size; ++place)
            slowest = std::min(
                slowest, slower_way(links, static_cast<std::size_t>(size), static_cast<std::size_t>(order.at(place)),
                                    static_cast<std::size_t>(order.at((place + 1) % size))));
        sum += slowest;
    }
    return sum / rings;
}

}  // namespace

TEST_CASE("boost_matching: as many pairs as there can be") {
    CHECK(pairs_of(0, {}) == 0);
    CHECK(pairs_of(3, {}) == 0);
    CHECK(pairs_of(2, {{0, 1}}) == 1);
    CHECK(pairs_of(4, {{1, 2}, {0, 1}, {2, 3}}) == 2);  // a greedy matching may take the middle alone
    // Two triangles joined by a path: odd cycles must be contracted.
    CHECK(pairs_of(8, {{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 5}}) == 4);
    CHECK(pairs_of(5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}}) == 1);
}

TEST_CASE("bandwidth_matching: 32 ranks with uniform links exchange over fast ones, and come together") {
    const auto links = random_links(32);
    const bandwidth_matching fast{.links = links, .least = 3, .window = 5, .matcher = adapt::boost_matching{}};
    const speeds found = of_rounds(fast, 32, links, 200);
    MESSAGE("mean bottleneck ", found.bottleneck, " MB/s, ", found.seconds, " s/MB");
    CHECK(found.bottleneck >= 2.9);
    CHECK(found.seconds <= 0.36);
    auto all = fast;
    all.bridge = topology::bridges::any;
    CHECK(of_rounds(all, 32, links, 200).seconds > 1.2 * found.seconds);
    CHECK(of_rounds(topology::random_matching{}, 32, links, 200).seconds > 20 * found.seconds);

    const auto verdict = topology::verify_mixing(fast, 32, {.count = 25, .window = 10}, key);
    CHECK_MESSAGE(verdict.ok, verdict.what);
    const double rate = topology::mixing_rate(fast, 32, 200, key);
    MESSAGE("second eigenvalue ", rate);
    CHECK(rate <= 0.76);
}

TEST_CASE("bandwidth_matching: between 14 cities it is faster than random pairs and rings") {
    const bandwidth_matching fast{.links = city_links, .least = 1.45, .window = 5, .matcher = adapt::boost_matching{}};
    const double found = of_rounds(fast, 14, city_links, 400).bottleneck;
    MESSAGE("mean bottleneck ", found, " MB/s");
    CHECK(found >= 1.45);
    CHECK(found >= 1.4 * of_rounds(topology::random_matching{}, 14, city_links, 400).bottleneck);
    CHECK(found >= 2 * ring_bottleneck(city_links, 14, 400));
}

TEST_CASE("bandwidth_matching: an odd number of ranks, and links of which some are missing") {
    auto links = random_links(9);
    for (std::size_t i = 0; i < links.size(); i += 5) links[i] = 0;
    const bandwidth_matching fast{.links = links, .least = 2, .matcher = adapt::boost_matching{}};
    const auto verdict = topology::verify_mixing(fast, 9, {.count = 100, .window = 12}, key);
    CHECK_MESSAGE(verdict.ok, verdict.what);
}
