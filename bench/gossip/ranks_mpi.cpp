// Gossip among 8 threads or 8 processes behind `delayed`, and among 1,000 simulated ranks. `bench_gossip_ranks_mpi
// threads ROUNDS`, `mpirun -np 8 bench_gossip_ranks_mpi mpi ROUNDS` and `bench_gossip_ranks_mpi simulated RANKS ROUNDS`
// print JSON. Models and links are checked, and compared with those of a simulation.
#include "../shared/expected.hpp"

#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/mpi.hpp>
#include <rill/transport/simulated.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr std::size_t dimension = 25'450;
constexpr double density = 1;  // a round takes some 60 ms: far more than a busy machine takes to wake a rank

/// How many bytes per second a rank sends: of a matrix with speeds of (0, 5] MB/s, the mean of its row.
std::uint64_t speed_of(int rank) {
    rill::random_sequence random(rill::random_key{3}.derive(rank));
    double sum = 0;
    for (int other = 0; other < 7; ++other) sum += 5e6 * (1 - random.uniform());
    return static_cast<std::uint64_t>(sum / 7);
}

/// Mixes models that differ by their rank, which keeps the mean. Returns seconds per round.
template <class Net, class Mix>
double mix(Net& net, const Mix& mixing, double kept, int rounds) {
    rill::group workers{net, rill::topology::recursive_doubling{}, {.timeout = rill::seconds(300)}};
    rill::gossip replica{workers, mixing};
    auto mask = rill::compress::random_mask{.density = kept}.bind(dimension);
    std::vector<float> model(dimension, static_cast<float>(net.rank()));
    rill::barrier(workers);
    const rill::time_point begin = net.now();
    for (int round = 0; round < rounds; ++round) replica.mix(model, mask);
    rill::barrier(workers);
    const double seconds = (net.now() - begin).seconds() / rounds;
    rill::all_reduce(workers, model, model, rill::aggregate::mean{});
    const double mean = (workers.size() - 1) / 2.0;
    for (const float each : model)
        bench::require(std::abs(static_cast<double>(each) - mean) <= 1e-4 * mean, "the mean");
    return seconds;
}

template <class Net>
void mix_delayed(Net& net, int rounds) {
    rill::delayed slow{net, {.bandwidth = speed_of(net.rank())}};
    const double seconds = mix(slow, rill::topology::random_matching{}, density, rounds);
    if (net.rank() != 0) return;
    double due = 0;
    const rill::simulated::network like{.links = [](rill::rank_t source, rill::rank_t) {
        return rill::network_link{.latency = {}, .bandwidth = speed_of(source)};
    }};
    rill::simulated::run(net.size(), like, [&](auto& simulated) {
        const double found = mix(simulated, rill::topology::random_matching{}, density, rounds);
        if (simulated.rank() == 0) due = found;
    });
    std::printf("{\"seconds\": %.6g, \"simulated\": %.6g, \"of_simulated\": %.6g}\n", seconds, due, seconds / due);
}

void mix_many(int ranks, int rounds) {
    const auto begin = std::chrono::steady_clock::now();
    rill::simulated::run(ranks, {}, [&](auto& net) {
        mix(net, rill::topology::ring_neighbours{}, 1, rounds);
        mix(net, rill::topology::random_matching{}, 0.01, 10 * rounds);
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("{\"seconds\": %.6g}\n", seconds);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string where = count > 2 ? arguments[1] : "";
    const int number = count > 2 ? std::atoi(arguments[2]) : 0;
    if ((where != "threads" && where != "mpi" && (where != "simulated" || count != 4)) || number == 0) {
        std::fprintf(stderr,
                     "usage: bench_gossip_ranks_mpi threads|mpi ROUNDS\n"
                     "       bench_gossip_ranks_mpi simulated RANKS ROUNDS\n");
        return 2;
    }
    try {
        if (where == "simulated") {
            mix_many(number, std::atoi(arguments[3]));
        } else if (where == "threads") {
            rill::in_process::run(8, [&](auto& net) { mix_delayed(net, number); });
        } else {
            const rill::mpi::environment library(rill::mpi::thread_level::multiple);
            rill::mpi::run([&](auto& net) { mix_delayed(net, number); });
        }
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_ranks_mpi: %s\n", failed.what());
        return 1;
    }
}
