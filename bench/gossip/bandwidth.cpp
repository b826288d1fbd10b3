// How fast the links are that a mixing uses, by rill's mixings and by a plain program: `bench_gossip_bandwidth MATRICES
// ROUNDS` prints JSON. Speeds are in MB/s: of 32 ranks, uniform in (0, 5], and of 14 cities.
#include "../../tests/support/city_links.hpp"
#include "plain_matching.hpp"

#include <rill/adapt/boost_matching.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gossip_bench::plain;

/// The pairs of one round.
using pairs = std::vector<std::array<int, 2>>;

double slowest(const matrix& speeds, const pairs& of) {
    double least = 1e300;
    for (const auto& [a, b] : of)
        least = std::min(least, speeds[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]);
    return least;
}

matrix uniform_speeds(int size, std::mt19937_64& random) {
    std::uniform_real_distribution<double> speed(0, 5);
    matrix speeds(static_cast<std::size_t>(size), std::vector<double>(static_cast<std::size_t>(size)));
    for (std::size_t a = 0; a < speeds.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) speeds[a][b] = speeds[b][a] = 5 - speed(random);
    return speeds;
}

/// The slower way of each link counts.
matrix speeds_of_cities() {
    matrix speeds(14, std::vector<double>(14));
    for (std::size_t a = 0; a < 14; ++a)
        for (std::size_t b = 0; b < 14; ++b) speeds[a][b] = std::min(city_links[14 * a + b], city_links[14 * b + a]);
    return speeds;
}

pairs pairs_of(const std::vector<int>& order, bool is_ring) {
    pairs found;
    for (std::size_t i = 0; i + 1 < order.size(); i += is_ring ? 1 : 2) found.push_back({order[i], order[i + 1]});
    if (is_ring) found.push_back({order.back(), order.front()});
    return found;
}

/// The ranks in a new order in each round: neighbours in a ring, or pairs.
std::function<pairs(std::uint64_t)> plain_order(std::size_t size, bool is_ring, std::uint64_t seed) {
    return [=, random = std::mt19937_64(seed)](std::uint64_t) mutable {
        std::vector<int> order(size);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        return pairs_of(order, is_ring);
    };
}

/// The rows of a mixing.
template <class Mix>
std::function<pairs(std::uint64_t)> rows_of(const Mix& mixing, std::size_t size, std::uint64_t seed) {
    auto bound = mixing.bind(static_cast<int>(size), rill::random_key{seed});
    return [=](std::uint64_t round) mutable {
        pairs found;
        rill::mixing_row row;
        for (int rank = 0; rank < static_cast<int>(size); ++rank) {
            bound.fill(round, rank, row);
            for (const int peer : row.receivers)
                if (rank < peer) found.push_back({rank, peer});
        }
        return found;
    };
}

/// What rounds of pairs are like.
struct figures {
    double bottleneck = 0;  ///< the mean of the slowest pair's MB/s
    double seconds = 0;     ///< the mean of the slowest pair's seconds per MB
    int connected = 0;      ///< the least number of consecutive rounds whose pairs always join all ranks
    double eigenvalue = 0;  ///< the second one of the mean of all rounds' matrices, which are projections
};

double second_eigenvalue(const matrix& of) {
    std::vector<double> x(of.size());
    std::mt19937_64 random(1);
    for (double& each : x) each = std::normal_distribution<double>()(random);
    double length = 0;
    for (int step = 0; step < 2000; ++step) {
        const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
        for (double& each : x) each -= mean;
        length = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
        std::vector<double> next(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
            next[i] = std::inner_product(x.begin(), x.end(), of[i].begin(), 0.0) / length;
        x = std::move(next);
    }
    return length;
}

/// How many rounds on from each it takes until all ranks are joined, at most.
int connected_within(int size, const std::vector<pairs>& rounds) {
    std::size_t most = 0;
    for (std::size_t first = 0; first + 1 < rounds.size(); ++first) {
        matrix joined(static_cast<std::size_t>(size), std::vector<double>(static_cast<std::size_t>(size)));
        std::size_t count = 0;
        bool all = false;
        while (!all && first + count < rounds.size()) {
            for (const auto& [a, b] : rounds[first + count++])
                joined[static_cast<std::size_t>(std::max(a, b))][static_cast<std::size_t>(std::min(a, b))] = 1;
            all = are_joined(components(size, [&](int a, int b) {
                return joined[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] > 0;
            }));
        }
        if (all) most = std::max(most, count);
    }
    return static_cast<int>(most);
}

/// Rounds of pairs, one after the other.
template <class Next>
std::vector<pairs> rounds_of(int rounds, Next&& pairs_in) {
    std::vector<pairs> all;
    for (int round = 0; round < rounds; ++round) all.push_back(pairs_in(static_cast<std::uint64_t>(round)));
    return all;
}

figures measure(const matrix& speeds, const std::vector<pairs>& rounds) {
    figures found;
    const double share = 1.0 / static_cast<double>(rounds.size());
    matrix mean(speeds.size(), std::vector<double>(speeds.size()));
    for (const pairs& each : rounds) {
        const double least = slowest(speeds, each);
        found.bottleneck += least * share;
        found.seconds += share / least;
        for (const auto& [a, b] : each) {
            const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
            for (double* entry : {&mean[i][j], &mean[j][i], &mean[i][i], &mean[j][j]}) *entry += share / 2;
        }
    }
    found.connected = connected_within(static_cast<int>(speeds.size()), rounds);
    found.eigenvalue = second_eigenvalue(mean);
    return found;
}

/// The partners that a plain program finds, as pairs.
auto plain_pairs(bandwidth_matching& matching) {
    return [&](std::uint64_t) {
        pairs found;
        const std::vector<int> partner = matching.next();
        for (int a = 0; a < static_cast<int>(partner.size()); ++a)
            if (a < partner[static_cast<std::size_t>(a)]) found.push_back({a, partner[static_cast<std::size_t>(a)]});
        return found;
    };
}

rill::topology::bandwidth_matching over(const matrix& speeds, double least, rill::topology::bridges bridge) {
    rill::topology::bandwidth_matching mixing{
        .least = least * 1e6, .window = 5, .matcher = rill::adapt::boost_matching{}, .bridge = bridge};
    for (const auto& row : speeds)
        for (const double speed : row) mixing.links.push_back(speed * 1e6);
    return mixing;
}

/// A mixing of rounds that have been found before.
struct replayed {
    static constexpr const char* name = "replayed";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = false;

    struct bound {
        std::shared_ptr<const std::vector<pairs>> rounds;
        void fill(std::uint64_t round, rill::rank_t rank, rill::mixing_row& row) const {
            row = {};
            for (const auto& [a, b] : (*rounds)[round]) {
                if (rank != a && rank != b) continue;
                row = {.own_weight = 0.5, .senders = {{a + b - rank, 0.5}}, .receivers = {a + b - rank}};
            }
        }
    };

    std::shared_ptr<const std::vector<pairs>> rounds{};

    bound bind(int, rill::random_key) const { return {rounds}; }
    [[maybe_unused]] friend bool operator==(const replayed&, const replayed&) = default;
};

/// The mean time that a round of gossip takes for each MB, by the simulated clock.
double simulated_seconds(const matrix& speeds, const std::vector<pairs>& rounds) {
    constexpr std::size_t dimension = 10'000;
    constexpr double apart = 1e6;  // seconds from round to round, which all ranks begin together
    const int size = static_cast<int>(speeds.size());
    std::vector<rill::network_link> links;
    for (const auto& row : speeds)
        for (const double speed : row)
            links.push_back({.latency = {}, .bandwidth = static_cast<std::uint64_t>(std::max(1.0, speed * 1e6))});
    const rill::simulated::network net{.links = rill::matrix_links(size, links),
                                       .computing = [](rill::rank_t, std::uint64_t, double seconds) {
                                           return rill::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
                                       }};
    std::vector<double> longest(rounds.size());
    rill::simulated::run(size, net, [&](rill::simulated::endpoint& on) {
        rill::group workers{on, rill::topology::ring{}, {.timeout = rill::seconds(1'000'000)}};
        rill::gossip replica{workers, replayed{std::make_shared<const std::vector<pairs>>(rounds)}};
        std::vector<float> model(dimension, 1);
        for (std::size_t round = 0; round < rounds.size(); ++round) {
            const double begin = apart * static_cast<double>(round + 1);
            on.compute(begin - (on.now() - rill::time_point{}).seconds());
            replica.mix(model);
            longest[round] = std::max(longest[round], (on.now() - rill::time_point{}).seconds() - begin);
        }
    });
    const double megabytes = 4e-6 * dimension * static_cast<double>(rounds.size());
    return std::accumulate(longest.begin(), longest.end(), 0.0) / megabytes;
}

void print(const char* name, const figures& of, const char* then) {
    std::printf("\"%s\": {\"bottleneck\": %.6g, \"seconds\": %.6g, \"connected\": %d, \"eigenvalue\": %.6g}%s", name,
                of.bottleneck, of.seconds, of.connected, of.eigenvalue, then);
}

/// Fixed policies, by one round on each of many matrices: a ring, and pairs at random.
void print_uniform(int matrices) {
    std::mt19937_64 random(1);
    double ring = 0, matching = 0, plain_ring = 0, plain_matching = 0;
    for (int i = 1; i <= matrices; ++i) {
        const auto seed = static_cast<std::uint64_t>(i);
        const matrix speeds = uniform_speeds(32, random);
        const auto of = [&](auto&& pairs_in) { return slowest(speeds, pairs_in(0)) / matrices; };
        ring += of(rows_of(rill::topology::ring_neighbours{}, 32, seed));
        matching += of(rows_of(rill::topology::random_matching{}, 32, seed));
        plain_ring += of(plain_order(32, true, seed));
        plain_matching += of(plain_order(32, false, seed));
    }
    std::printf("{\"ring\": {\"rill\": %.6g, \"plain\": %.6g, \"due\": %.6g},\n", ring, plain_ring, 5.0 / 33);
    std::printf("\"random_matching\": {\"rill\": %.6g, \"plain\": %.6g, \"due\": %.6g},\n", matching, plain_matching,
                5.0 / 17);
}

/// Means over some matrices, and the worst of what holds for each. `rounds_on(speeds, i)`: rounds on the i-th matrix.
/// Seconds by the simulated clock, if wanted.
template <class Rounds>
figures over_matrices(int matrices, bool by_simulation, Rounds&& rounds_on) {
    figures all;
    std::mt19937_64 random(2);
    for (int i = 0; i < matrices; ++i) {
        const matrix speeds = uniform_speeds(32, random);
        const std::vector<pairs> rounds = rounds_on(speeds, static_cast<std::uint64_t>(i));
        const figures each = measure(speeds, rounds);
        all.bottleneck += each.bottleneck / matrices;
        all.seconds += (by_simulation ? simulated_seconds(speeds, rounds) : each.seconds) / matrices;
        all.connected = std::max(all.connected, each.connected);
        all.eigenvalue = std::max(all.eigenvalue, each.eigenvalue);
    }
    return all;
}

void print_matchings(int matrices, int rounds) {
    using rill::topology::bridges;
    const auto plain = [&](bool fastest) {
        return over_matrices(matrices, false, [&](const matrix& speeds, std::uint64_t i) {
            bandwidth_matching matching(speeds, 3, 5, fastest, static_cast<unsigned>(i));
            return rounds_of(rounds, plain_pairs(matching));
        });
    };
    const auto ours = [&](bridges bridge) {
        return over_matrices(matrices, true, [&](const matrix& speeds, std::uint64_t i) {
            return rounds_of(rounds, rows_of(over(speeds, 3, bridge), 32, i));
        });
    };
    std::printf("\"uniform\": {");
    print("plain", plain(true), ", ");
    print("plain_any_bridge", plain(false), ", ");
    print("rill", ours(bridges::fastest), ", ");
    print("rill_any_bridge", ours(bridges::any), ", ");
    print("rill_random",
          over_matrices(matrices, true,
                        [&](const matrix&, std::uint64_t i) {
                            return rounds_of(rounds, rows_of(rill::topology::random_matching{}, 32, i));
                        }),
          "},\n");
}

void print_cities(int rounds) {
    const matrix speeds = speeds_of_cities();
    const auto print_rounds = [&](const char* name, const std::vector<pairs>& of, const char* then) {
        print(name, measure(speeds, of), then);
    };
    bandwidth_matching matching(speeds, 1.45, 5, true, 1);
    std::printf("\"cities\": {");
    print_rounds("plain", rounds_of(rounds, plain_pairs(matching)), ", ");
    print_rounds("rill", rounds_of(rounds, rows_of(over(speeds, 1.45, rill::topology::bridges::fastest), 14, 1)), ", ");
    print_rounds("rill_random", rounds_of(rounds, rows_of(rill::topology::random_matching{}, 14, 1)), ", ");
    print_rounds("plain_random", rounds_of(rounds, plain_order(14, false, 1)), ", ");
    print_rounds("plain_random_ring", rounds_of(rounds, plain_order(14, true, 1)), "}}\n");
}

/// What a picture shows: how often each pair of cities was matched, and the slowest link of 32 ranks in each round.
void print_picture(int rounds) {
    using rill::topology::bridges;
    const matrix cities = speeds_of_cities();
    matrix matched(cities.size(), std::vector<double>(cities.size()));
    for (const pairs& each : rounds_of(rounds, rows_of(over(cities, 1.45, bridges::fastest), 14, 1)))
        for (const auto& [a, b] : each) {
            matched[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] += 1;
            matched[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] += 1;
        }
    const auto print_rows = [](const char* name, const matrix& rows) {
        std::printf("\"%s\": [", name);
        for (const auto& row : rows)
            for (std::size_t i = 0; i < row.size(); ++i)
                std::printf("%s%.6g", i > 0 ? ", " : &row == rows.data() ? "[" : "], [", row[i]);
        std::printf("]]");
    };
    std::printf("{");
    print_rows("speeds", cities);
    std::printf(",\n");
    print_rows("matched", matched);
    std::mt19937_64 random(2);
    const matrix speeds = uniform_speeds(32, random);
    const auto slowest_of = [&](const auto& mixing) {
        std::vector<double> found;
        for (const pairs& each : rounds_of(rounds, rows_of(mixing, 32, 1))) found.push_back(slowest(speeds, each));
        return found;
    };
    std::printf(",\n");
    print_rows("slowest", {slowest_of(over(speeds, 3, bridges::fastest)), slowest_of(rill::topology::random_matching{}),
                           slowest_of(rill::topology::ring_neighbours{})});
    std::printf("}\n");
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: bench_gossip_bandwidth MATRICES|picture ROUNDS\n");
        return 2;
    }
    try {
        if (std::string(arguments[1]) == "picture") {
            print_picture(std::atoi(arguments[2]));
            return 0;
        }
        const int matrices = std::atoi(arguments[1]), rounds = std::atoi(arguments[2]);
        print_uniform(matrices);
        print_matchings(std::max(1, matrices / 250), rounds);
        print_cities(5 * rounds);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_bandwidth: %s\n", failed.what());
        return 1;
    }
}
