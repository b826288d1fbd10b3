// How fast the links are that a mixing uses, by rill's mixings and by a plain program: `bench_gossip_bandwidth MATRICES
// ROUNDS CITIES` prints JSON. Speeds are in MB/s: of 32 ranks, uniform in (0, 5], and of 14 cities, a CSV file.
#include "plain_matching.hpp"

#include <rill/concept/mixing.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gossip_bench::plain;

/// The pairs of one round.
using pairs = std::vector<std::pair<int, int>>;

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
matrix speeds_of_cities(const std::string& file) {
    std::ifstream in(file);
    matrix speeds;
    for (std::string line; std::getline(in, line);) {
        std::istringstream cells(line);
        speeds.emplace_back();
        for (std::string cell; std::getline(cells, cell, ',');) speeds.back().push_back(std::stod(cell));
    }
    if (speeds.empty()) throw std::runtime_error("no speeds in " + file);
    for (std::size_t a = 0; a < speeds.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) speeds[a][b] = speeds[b][a] = std::min(speeds[a].at(b), speeds[b].at(a));
    return speeds;
}

pairs pairs_of(const std::vector<int>& order, bool is_ring) {
    pairs found;
    for (std::size_t i = 0; i + 1 < order.size(); i += is_ring ? 1 : 2) found.emplace_back(order[i], order[i + 1]);
    if (is_ring) found.emplace_back(order.back(), order.front());
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
                if (rank < peer) found.emplace_back(rank, peer);
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

template <class Next>
figures measure(const matrix& speeds, int rounds, Next&& pairs_in) {
    figures found;
    const double share = 1.0 / rounds;
    matrix mean(speeds.size(), std::vector<double>(speeds.size()));
    std::vector<pairs> all;
    for (int round = 0; round < rounds; ++round) {
        all.push_back(pairs_in(static_cast<std::uint64_t>(round)));
        const double least = slowest(speeds, all.back());
        found.bottleneck += least * share;
        found.seconds += share / least;
        for (const auto& [a, b] : all.back()) {
            const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
            mean[i][j] += share / 2;
            mean[j][i] += share / 2;
            mean[i][i] += share / 2;
            mean[j][j] += share / 2;
        }
    }
    found.connected = connected_within(static_cast<int>(speeds.size()), all);
    found.eigenvalue = second_eigenvalue(mean);
    return found;
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

/// Means over some matrices, and the worst of what holds for each.
figures over_matrices(int matrices, int rounds, bool fastest) {
    figures all;
    std::mt19937_64 random(2);
    for (int i = 0; i < matrices; ++i) {
        const matrix speeds = uniform_speeds(32, random);
        bandwidth_matching matching(speeds, 3, 5, fastest, static_cast<unsigned>(i));
        const figures each = measure(speeds, rounds, [&](std::uint64_t) {
            pairs found;
            const std::vector<int> partner = matching.next();
            for (int a = 0; a < 32; ++a)
                if (a < partner[static_cast<std::size_t>(a)])
                    found.emplace_back(a, partner[static_cast<std::size_t>(a)]);
            return found;
        });
        all.bottleneck += each.bottleneck / matrices;
        all.seconds += each.seconds / matrices;
        all.connected = std::max(all.connected, each.connected);
        all.eigenvalue = std::max(all.eigenvalue, each.eigenvalue);
    }
    return all;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: bench_gossip_bandwidth MATRICES ROUNDS CITIES\n");
        return 2;
    }
    try {
        const int matrices = std::atoi(arguments[1]), rounds = std::atoi(arguments[2]);
        print_uniform(matrices);
        std::printf("\"uniform\": {");
        print("plain", over_matrices(std::max(1, matrices / 250), rounds, true), ", ");
        print("plain_any_bridge", over_matrices(std::max(1, matrices / 250), rounds, false), "},\n");
        const matrix cities = speeds_of_cities(arguments[3]);
        bandwidth_matching matching(cities, 1.45, 5, true, 1);
        std::printf("\"cities\": {");
        print("plain",
              measure(cities, rounds,
                      [&](std::uint64_t) {
                          pairs found;
                          const std::vector<int> partner = matching.next();
                          for (int a = 0; a < static_cast<int>(partner.size()); ++a)
                              if (a < partner[static_cast<std::size_t>(a)])
                                  found.emplace_back(a, partner[static_cast<std::size_t>(a)]);
                          return found;
                      }),
              ", ");
        print("plain_random_matching", measure(cities, 20 * rounds, plain_order(cities.size(), false, 1)), ", ");
        print("plain_random_ring", measure(cities, 20 * rounds, plain_order(cities.size(), true, 1)), "}}\n");
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_bandwidth: %s\n", failed.what());
        return 1;
    }
}
