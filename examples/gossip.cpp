// Sixteen ranks with a model each, of 10,000 numbers, come together by gossip: how far they are apart after some
// rounds, and what a round costs each of them.
#include <rill/mixing.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

constexpr int ranks = 16, rounds = 16;
constexpr std::size_t dimension = 10'000;

/// The mean distance of a rank's value from the mean of all.
double apart(const std::vector<std::vector<float>>& models) {
    double sum = 0;
    for (std::size_t i = 0; i < dimension; ++i) {
        double mean = 0;
        for (const auto& model : models) mean += static_cast<double>(model[i]) / ranks;
        for (const auto& model : models) sum += std::abs(static_cast<double>(model[i]) - mean);
    }
    return sum / ranks / dimension;
}

template <class Mixing>
void gather(const Mixing& mixing, double density) {
    std::vector<std::vector<float>> models(ranks, std::vector<float>(dimension));
    const rill::traffic all = [&] {
        rill::traffic of_first;
        rill::simulated::run(ranks, {}, [&](rill::simulated::endpoint& net) {
            std::vector<float>& model = models[static_cast<std::size_t>(net.rank())];
            model.assign(dimension, static_cast<float>(net.rank()));
            rill::group workers{net, rill::topology::ring{}};
            rill::gossip replica{workers, mixing};
            auto mask = rill::compress::random_mask{.density = density}.bind(dimension);
            for (int round = 0; round < rounds; ++round) {
                const rill::round_receipt& done = replica.mix(model, mask);
                if (net.rank() == 0) of_first += done.wire;
            }
        });
        return of_first;
    }();
    std::printf("%-15s %3.0f %% of the entries: %.4f apart, %6.0f bytes a round\n", Mixing::name, 100 * density,
                apart(models), static_cast<double>(all.bytes_sent) / rounds);
}

int main() {
    std::printf("%-15s %31.4f apart\n", "before", 4.0);
    gather(rill::topology::ring_neighbours{}, 1);
    gather(rill::topology::random_matching{}, 1);
    gather(rill::topology::exponential{}, 1);
    gather(rill::topology::random_matching{}, 0.1);
}
