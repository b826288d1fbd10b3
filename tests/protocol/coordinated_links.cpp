// Gossip with a coordinator that learns from exchanges how fast its links are, and that goes on from a saved round.
#include <rill/adapt/boost_matching.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace coordinated_links_cases {

using namespace rill;
using simulated::endpoint;

constexpr int ranks = 8;
constexpr std::size_t dimension = 1000;
constexpr double message_bytes = 8 * dimension + 96;
constexpr double given = 1e6;

/// Ranks of two fours have links of 2 MB/s among them, and of 50 kB/s to the others.
double true_speed(rank_t a, rank_t b) { return a / 4 == b / 4 ? 2e6 : 5e4; }
simulated::network two_fours() {
    return {.links = [](rank_t a, rank_t b) {
        return network_link{microseconds(10), static_cast<std::uint64_t>(true_speed(a, b))};
    }};
}
/// Links of which nobody knows better.
topology::bandwidth_matching unknown(double least) {
    return {.links = std::vector<double>(ranks * ranks, given), .least = least, .matcher = adapt::boost_matching{}};
}

struct outcome {
    std::vector<double> links;
    duration took{};  ///< the last 40 rounds

    double link(rank_t a, rank_t b) const { return links[static_cast<std::size_t>(a * ranks + b)]; }
};

/// `pause(net, round)` is called before each exchange.
template <class Pause>
outcome run(const simulated::network& network, const coordinated& options, double least, Pause pause) {
    outcome seen;
    simulated::run(ranks, network, [&](endpoint& net) {
        group workers{net, topology::ring{}, {.timeout = seconds(10)}};
        gossip saps{workers, unknown(least), options};
        std::vector<double> model(dimension, net.rank());
        time_point begin = net.now();
        while (saps.next()) {
            if (saps.round() + 40 == options.rounds) begin = net.now();
            pause(net, saps.round());
            try {
                saps.mix(model);
            } catch (const timeout&) {
                return;  // it is out
            }
        }
        if (net.rank() == 0) seen = {saps.links(), net.now() - begin};
    });
    return seen;
}
void no_pause(endpoint&, std::uint64_t) {}
void pause_by_rank(endpoint& net, std::uint64_t) { net.sleep_until(net.now() + microseconds(300) * net.rank()); }

TEST_CASE("coordinated gossip: links become what exchanges say, whoever begins first") {
    for (const bool pauses : {false, true}) {
        const auto before = pauses ? pause_by_rank : no_pause;
        const outcome seen = run(two_fours(), {.rounds = 60, .link_weight = 1}, 0, before);
        int measured = 0;
        for (rank_t a = 0; a < ranks; ++a)
            for (rank_t b = 0; b < ranks; ++b) {
                if (a == b || seen.link(a, b) == given) continue;
                ++measured;
                const double transit = 1e-5 + message_bytes / true_speed(a, b);
                CHECK(seen.link(a, b) == doctest::Approx(message_bytes / transit).epsilon(0.01));
                CHECK(seen.link(a, b) == seen.link(b, a));
            }
        CHECK(measured == ranks * (ranks - 1));
        CHECK(run(two_fours(), {.rounds = 60, .link_weight = 1}, 0, before).links == seen.links);
    }
}

TEST_CASE("coordinated gossip: pairs over learned links are faster than over links that were given wrongly") {
    const outcome fixed = run(two_fours(), {.rounds = 100}, 5e5, no_pause);
    const outcome learned = run(two_fours(), {.rounds = 100, .link_weight = 0.5}, 5e5, no_pause);
    CHECK(fixed.links == std::vector<double>(ranks * ranks, given));
    CHECK(learned.link(0, 4) < 5e5);
    CHECK(learned.link(0, 1) > 5e5);
    CHECK(fixed.took.ns > learned.took.ns * 5 / 4);
}

TEST_CASE("coordinated gossip: a part of an exchange's speed counts") {
    const outcome seen = run({.latency = {}, .bandwidth = 3'000'000}, {.rounds = 1, .link_weight = 0.25}, 0, no_pause);
    int moved = 0;
    for (const double each : seen.links)
        if (each != given) {
            ++moved;
            CHECK(each == doctest::Approx(0.75 * given + 0.25 * 3e6).epsilon(0.01));
        }
    CHECK(moved == ranks);
}

TEST_CASE("coordinated gossip: a slow rank does not make its links slow, and a dead one does not move them") {
    const auto slow = [](endpoint& net, std::uint64_t) {
        if (net.rank() == 2) net.sleep_until(net.now() + seconds(1));
    };
    const outcome late = run(two_fours(), {.rounds = 60, .link_weight = 1}, 0, slow);
    const outcome even = run(two_fours(), {.rounds = 60, .link_weight = 1}, 0, no_pause);
    for (rank_t a = 0; a < ranks; ++a)
        for (rank_t b = 0; b < ranks; ++b) {
            if (a == b) continue;
            CHECK((late.link(a, b) == (a == 2 || b == 2 ? given : late.link(b, a))));
            if (a != 2 && b != 2 && late.link(a, b) != given)
                CHECK(late.link(a, b) == doctest::Approx(even.link(a, b)).epsilon(0.01));
        }
    simulated::network network = two_fours();
    network.faults.faults = {faults::kill(4).after(12)};
    const outcome dead = run(network, {.rounds = 60, .link_weight = 1}, 0, no_pause);
    REQUIRE(!dead.links.empty());
    for (rank_t a = 0; a < ranks; ++a)
        if (a != 4) CHECK((dead.link(a, 4) == given || dead.link(a, 4) > 0.9 * true_speed(a, 4)));
}

TEST_CASE("coordinated gossip: an exchange that is overdue at both ends counts as one that takes the timeout") {
    simulated::network network{.bandwidth = 2'000'000};
    network.faults.faults = {faults::cut_between(1, 2).at(seconds(1))};
    const auto begin_later = [](endpoint& net, std::uint64_t round) {
        if (round == 0) net.sleep_until(time_point{} + seconds(2));
    };
    const outcome seen = run(network, {.rounds = 40, .link_weight = 1}, 0, begin_later);
    CHECK(seen.link(1, 2) == doctest::Approx(message_bytes / 10).epsilon(0.01));
    CHECK(seen.link(1, 3) > 1.9e6);
}

TEST_CASE("coordinated gossip: what links cannot follow is refused") {
    const auto refused = [](const auto& mixing, const coordinated& options, const char* why) {
        simulated::run(2, {}, [&](endpoint& net) {
            group workers{net, topology::ring{}};
            const auto make = [&] { gossip saps{workers, mixing, options}; };
            CHECK_THROWS_WITH_AS(make(), doctest::Contains(why), contract_violation);
        });
    };
    refused(topology::random_matching{}, {.link_weight = 0.5}, "the mixing has no links that exchanges could update");
    const topology::bandwidth_matching two{
        .links = std::vector<double>(4, given), .least = 0, .matcher = adapt::boost_matching{}};
    for (const double weight : {-0.1, 1.5}) refused(two, {.link_weight = weight}, "gossip: link_weight is");
}

/// The model of each rank after the rounds from `first` to `last`.
template <class Run>
void some_rounds(Run run_on, std::uint64_t first, std::uint64_t last, std::vector<std::vector<double>>& all) {
    run_on(ranks, [&](auto& net) {
        group workers{net, topology::ring{}, {.timeout = seconds(10)}};
        gossip saps{workers, unknown(0), coordinated{.rounds = last}};
        if (first > 0) saps.resume_at(first);
        CHECK(saps.round() == first);
        auto mask = compress::random_mask{.density = 0.3}.bind<double>(dimension);
        while (saps.next()) saps.mix(all[static_cast<std::size_t>(net.rank())], mask);
        CHECK(saps.round() == (first < last ? last : first));
        CHECK_THROWS_AS(saps.resume_at(0), contract_violation);
    });
}

TEST_CASE("coordinated gossip: goes on from a number of rounds as if nothing had happened") {
    std::vector<std::vector<double>> first(ranks, std::vector<double>(dimension));
    for (std::size_t rank = 0; rank < first.size(); ++rank)
        for (std::size_t i = 0; i < dimension; ++i) first[rank][i] = static_cast<double>(mix64(rank, i) % 1000);
    const auto simulation = [](int size, auto body) { simulated::run(size, {}, body); };
    const auto threads = [](int size, auto body) { in_process::run(size, body); };
    auto whole = first, halves = first, of_threads = first;
    some_rounds(simulation, 0, 20, whole);
    some_rounds(simulation, 0, 7, halves);
    CHECK(halves != whole);
    some_rounds(simulation, 7, 20, halves);
    CHECK(halves == whole);
    some_rounds(simulation, 20, 20, halves);  // nothing is left
    CHECK(halves == whole);
    some_rounds(threads, 0, 11, of_threads);
    some_rounds(threads, 11, 20, of_threads);
    CHECK(of_threads == whole);
}

}  // namespace coordinated_links_cases
