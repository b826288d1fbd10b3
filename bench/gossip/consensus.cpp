// How fast the models of 32 ranks come together by random matchings, of which one of c entries is mixed in each round:
// by rill's gossip, and by a plain program. `bench_gossip_consensus RUNS` prints JSON.
#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/transport/simulated.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace {

constexpr int ranks = 32;
constexpr std::size_t dimension = 1000;

using models = std::vector<std::vector<float>>;

models first_models(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> value;
    models all(ranks, std::vector<float>(dimension));
    for (auto& model : all)
        for (float& each : model) each = value(random);
    return all;
}

/// The squared distance of all models from their mean.
double distance(const models& all) {
    double sum = 0;
    for (std::size_t k = 0; k < dimension; ++k) {
        double mean = 0;
        for (const auto& model : all) mean += static_cast<double>(model[k]) / ranks;
        for (const auto& model : all) sum += std::pow(static_cast<double>(model[k]) - mean, 2);
    }
    return sum;
}

void mix_by_rill(models& all, double every, int rounds, std::uint64_t seed) {
    rill::simulated::run(ranks, {}, [&](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::ring{}, {.seed = seed}};
        rill::gossip replica{workers, rill::topology::random_matching{}};
        auto mask = rill::compress::random_mask{.density = 1 / every, .seed = seed}.bind(dimension);
        for (int round = 0; round < rounds; ++round) replica.mix(all[static_cast<std::size_t>(net.rank())], mask);
    });
}

void mix_plainly(models& all, double every, int rounds, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::bernoulli_distribution chosen(1 / every);
    std::vector<std::size_t> order(ranks);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int round = 0; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (std::size_t k = 0; k < dimension; ++k) {
            if (!chosen(random)) continue;
            for (std::size_t p = 0; p < ranks; p += 2) {
                float &a = all[order[p]][k], &b = all[order[p + 1]][k];
                a = b = (a + b) / 2;
            }
        }
    }
}

/// The factor per round, of the mean over the runs.
template <class Mix>
double factor(Mix&& mix, double every, int rounds, int runs) {
    double left = 0;
    for (int run = 1; run <= runs; ++run) {
        models all = first_models(static_cast<std::uint64_t>(run));
        const double before = distance(all);
        mix(all, every, rounds, static_cast<std::uint64_t>(run));
        left += distance(all) / before / runs;
    }
    return std::pow(left, 1.0 / rounds);
}

}  // namespace

int main(int count, char** arguments) {
    const int runs = count > 1 ? std::atoi(arguments[1]) : 200;
    try {
        const char* before = "{";
        for (const int every : {1, 10, 100}) {
            const int rounds = every == 1 ? 5 : 2 * every;
            const double due = 1 - (1 - 0.5 * (1 - 1.0 / (ranks - 1))) / every;
            std::printf("%s\"c%d\": {\"due\": %.6g, \"rill\": %.6g, \"plain\": %.6g}", before, every, due,
                        factor(mix_by_rill, every, rounds, runs), factor(mix_plainly, every, rounds, runs));
            before = ",\n";
        }
        std::printf("}\n");
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_consensus: %s\n", failed.what());
        return 1;
    }
}
