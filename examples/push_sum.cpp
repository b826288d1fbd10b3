// Push-sum on links that lead one way only (SGP): each of six ranks descends to the minimum of its own data, and sends
// its model along its links. Without the weights models would go to a mean in which some ranks count more than others.
#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/topology/directed.hpp>
#include <rill/train/schedule.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int ranks = 6;
constexpr std::size_t parameters = 1000;
constexpr std::uint64_t rounds = 300;

/// A ring one way, and shortcuts to rank 0, which hears more than the others.
const rill::topology::directed one_way{.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}, {2, 0}, {3, 0}}};
constexpr rill::train::warmup_cosine rate{.peak = 0.2, .total = rounds};

/// The minimum of this rank's data; that of all is the mean, sin(i).
float target(rill::rank_t rank, std::size_t i) {
    return std::sin(static_cast<float>(i)) + static_cast<float>(rank) - (ranks - 1) / 2.0F;
}

double error_of(const std::vector<float>& model) {
    double sum = 0;
    for (std::size_t i = 0; i < parameters; ++i)
        sum += std::abs(static_cast<double>(model[i] - std::sin(static_cast<float>(i)))) / parameters;
    return sum;
}

int main() {
    rill::simulated::run(ranks, {}, [](rill::simulated::endpoint& net) {
        rill::group workers{net, rill::topology::ring{}};
        rill::gossip push{workers, one_way};
        std::vector<float> model(parameters), z(parameters);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            push.debias(model, z);  // z: the model over its weight, where the gradient is taken
            for (std::size_t i = 0; i < parameters; ++i)
                model[i] -= static_cast<float>(rate.rate(round)) * (z[i] - target(net.rank(), i));
            push.mix(model);
        }
        push.debias(model, z);
        for (int rank = 0; rank < ranks; ++rank) {  // one line after the other
            if (rank == net.rank())
                std::printf("rank %d: weight %.3f, model %.3f from the best for all, over its weight %.3f\n", rank,
                            push.weight(), error_of(model), error_of(z));
            rill::barrier(workers);
        }
    });
}
