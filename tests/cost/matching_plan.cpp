#include <rill/cost/matching_plan.hpp>

#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/greedy_matcher.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace {

using namespace rill;
using topology::bandwidth_matching;

/// Speeds of (0, 5] MB/s, equal both ways.
bandwidth_matching uniform(std::size_t size) {
    bandwidth_matching made{.links = std::vector<double>(size * size), .matcher = support::greedy_matcher{}};
    random_sequence random(random_key{5});
    for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b)
            made.links[a * size + b] = made.links[b * size + a] = 5e6 * (1 - random.uniform());
    return made;
}

/// By how much the logarithm of the squared distance falls in a simulated second, in a gossip with a coordinator.
double in_simulation(const bandwidth_matching& mixing, int ranks, double density, std::size_t dimension,
                     std::uint64_t rounds) {
    std::vector<network_link> rows;
    for (const double speed : mixing.links)
        rows.push_back({.latency = {}, .bandwidth = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(speed))});
    std::vector<std::vector<float>> models(static_cast<std::size_t>(ranks));
    const auto distance = [&] {
        double sum = 0;
        for (std::size_t k = 0; k < dimension; ++k) {
            double mean = 0;
            for (const auto& model : models) mean += static_cast<double>(model[k]) / ranks;
            for (const auto& model : models) sum += std::pow(static_cast<double>(model[k]) - mean, 2);
        }
        return sum;
    };
    for (std::size_t rank = 0; rank < models.size(); ++rank) {
        random_sequence random(random_key{9}.derive(rank));
        for (std::size_t k = 0; k < dimension; ++k) models[rank].push_back(static_cast<float>(random.uniform()));
    }
    const double before = distance();
    double seconds = 0;
    rill::simulated::run(ranks, {.links = matrix_links(ranks, rows)}, [&](rill::simulated::endpoint& net) {
        group workers{net, topology::tree{}, {.timeout = rill::seconds(1000)}};
        const time_point begin = net.now();
        gossip saps{workers, mixing, coordinated{.rounds = rounds}};
        auto mask = compress::random_mask{.density = density}.bind(dimension);
        while (saps.next()) saps.mix(models[static_cast<std::size_t>(net.rank())], mask);
        seconds = std::max(seconds, (net.now() - begin).seconds());
    });
    return std::log(before / distance()) / seconds;
}

}  // namespace

TEST_CASE("forecast_matchings: two ranks have one pair") {
    const bandwidth_matching mixing{.links = {0, 4e6, 2e6, 0}, .matcher = support::greedy_matcher{}};
    const auto all = cost::forecast_matchings(mixing, 2, {.bytes = 1e6, .density = 0.5, .seconds_besides = 0.25});
    REQUIRE(all.size() == 2);
    CHECK(all[0].least == 0);
    CHECK(all[1].least == 2e6);  // of the slower way
    for (const auto& each : all) {
        CHECK(each.slowest == doctest::Approx(2e6));
        CHECK(each.seconds == doctest::Approx(0.75));
        CHECK(each.factor == doctest::Approx(0.5));
        CHECK(each.consensus_per_second() == doctest::Approx(std::log(2) / 0.75));
    }
    CHECK(&cost::fastest_consensus(all) == all.data());
}

TEST_CASE("forecast_matchings: the higher the least speed, the faster the slowest pair, and the less a round brings") {
    const auto all = cost::forecast_matchings(uniform(16), 16, {.bytes = 1e5});
    REQUIRE(all.size() == 16);
    CHECK(all.front().least == 0);
    const auto& best = cost::fastest_consensus(all);
    CHECK(best.least > 1e6);
    CHECK(best.slowest > 2 * all.front().slowest);
    CHECK(best.factor > all.front().factor);
    CHECK(best.consensus_per_second() > 2 * all.front().consensus_per_second());
    CHECK(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.least < b.least; }));
    // Where a round takes long besides, speed counts less.
    const auto slow = cost::forecast_matchings(uniform(16), 16, {.bytes = 1e5, .seconds_besides = 100});
    CHECK(cost::fastest_consensus(slow).least < best.least);
}

TEST_CASE("forecast_matchings: models come together at least as fast as forecast, in simulated seconds") {
    constexpr int ranks = 16;
    constexpr std::size_t dimension = 8000;
    constexpr double density = 0.25;
    bandwidth_matching mixing = uniform(ranks);
    const auto all = cost::forecast_matchings(mixing, ranks, {.bytes = 4 * density * dimension, .density = density});
    const auto measured = [&](const cost::matching_forecast& of) {
        mixing.least = of.least;
        const double found = in_simulation(mixing, ranks, density, dimension, 60);
        CAPTURE(of.least);
        CHECK(found > 0.8 * of.consensus_per_second());  // the factor is that of the slowest direction
        CHECK(found < 2.5 * of.consensus_per_second());
        return found;
    };
    const auto& best = cost::fastest_consensus(all);
    CHECK(measured(best) > 1.5 * measured(all.front()));
}

TEST_CASE("forecast_matchings: over links that do not join all ranks, models never come together") {
    for (const std::vector<double>& links : {std::vector<double>(16), std::vector<double>{0, 1, 0, 0, 1, 0, 0, 0,  //
                                                                                          0, 0, 0, 1, 0, 0, 1, 0}}) {
        const bandwidth_matching mixing{.links = links, .matcher = support::greedy_matcher{}};
        for (const auto& each : cost::forecast_matchings(mixing, 4, {.bytes = 1e3})) {
            CHECK(each.factor == 1);
            CHECK(each.consensus_per_second() == 0);
            CHECK_FALSE(std::signbit(each.consensus_per_second()));
        }
    }
}

TEST_CASE("forecast_matchings: what it refuses") {
    const bandwidth_matching mixing = uniform(4);
    const auto refused = [&](const bandwidth_matching& of, const cost::matching_round& round, const char* why) {
        CHECK_THROWS_WITH_AS((void)cost::forecast_matchings(of, 4, round), doctest::Contains(why), contract_violation);
    };
    refused(mixing, {.bytes = 0}, "cost::matching_round: bytes is 0; it must be above 0");
    const double infinite = std::numeric_limits<double>::infinity();
    refused(mixing, {.bytes = infinite}, "bytes is inf");
    refused(mixing, {.bytes = 1, .seconds_besides = infinite}, "seconds_besides is inf");
    refused(mixing, {.bytes = 1, .density = 2}, "density is 2; it must be in (0, 1]");
    refused(mixing, {.bytes = 1, .seconds_besides = -1}, "seconds_besides is -1; it must be 0 or more");
    refused({.links = mixing.links}, {.bytes = 1}, "it has no matcher");
    refused({.links = {1, 2, 3}, .matcher = support::greedy_matcher{}}, {.bytes = 1}, "links");
    CHECK_THROWS_AS((void)cost::fastest_consensus({}), contract_violation);
}
