// Gossip with a coordinator among 8 threads or 8 processes, behind `delayed` with a speed of its own for each link, and
// gossip among 1,000 simulated ranks. `bench_gossip_ranks_mpi threads ROUNDS`, `mpirun -np 8 bench_gossip_ranks_mpi mpi
// ROUNDS` and `bench_gossip_ranks_mpi simulated RANKS ROUNDS` print JSON. Models are checked, and times compared with
// those of a simulation.
#include "../shared/expected.hpp"

#include <rill/adapt/boost_matching.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/rill.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/links.hpp>
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

constexpr int few = 8;  // threads or processes
constexpr std::size_t values_of_few =
    100'000;  // a round takes over 100 ms: far more than a busy machine takes to wake a rank
constexpr std::size_t values_of_many = 25'450;

/// Links of (0, 5] MB/s, equal both ways, drawn at random: bytes per second, row by row.
std::vector<double> speeds() {
    constexpr std::size_t size = few;
    std::vector<double> rows(size * size);
    rill::random_sequence random(rill::random_key{3});
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t j = 0; j < i; ++j) rows[i * size + j] = rows[j * size + i] = 5e6 * (1 - random.uniform()) + 1;
    return rows;
}

rill::matrix_links links() {
    std::vector<rill::network_link> rows;
    for (const double speed : speeds()) rows.push_back({.latency = {}, .bandwidth = static_cast<std::uint64_t>(speed)});
    return {few, rows};
}

rill::topology::bandwidth_matching over_fast_links() {
    return {.links = speeds(), .least = 2.5e6, .matcher = rill::adapt::boost_matching{}};
}

/// Mixes models that differ by their rank, which keeps the mean; `mix(workers, model)` makes all rounds. Returns
/// seconds.
template <class Net, class Mix>
double timed(Net& net, std::size_t dimension, Mix&& mix) {
    rill::group workers{net, rill::topology::recursive_doubling{}, {.timeout = rill::seconds(300)}};
    std::vector<float> model(dimension, static_cast<float>(net.rank()));
    rill::barrier(workers);
    const rill::time_point begin = net.now();
    mix(workers, model);
    rill::barrier(workers);
    const double seconds = (net.now() - begin).seconds();
    rill::all_reduce(workers, model, model, rill::aggregate::mean{});
    const double mean = (workers.size() - 1) / 2.0;
    for (const float each : model)
        bench::require(std::abs(static_cast<double>(each) - mean) <= 1e-4 * mean, "the mean");
    return seconds;
}

/// SAPS-PSGD without training: rank 0 coordinates. Returns seconds per round.
template <class Net, class Mix>
double coordinated(Net& net, const Mix& mixing, int rounds) {
    return timed(
               net, values_of_few,
               [&](auto& workers, std::vector<float>& model) {
                   rill::gossip saps{workers, mixing, rill::coordinated{.rounds = static_cast<std::uint64_t>(rounds)}};
                   while (saps.next()) bench::require(saps.mix(model).missing.empty(), "an exchange was skipped");
               }) /
           rounds;
}

/// Each link between two ranks has its own speed, as in the simulation.
template <class Net, class Mix>
void compare(const char* name, Net& net, const Mix& mixing, int rounds, const char* then) {
    rill::delayed slow{net, links()};
    const double seconds = coordinated(slow, mixing, rounds);
    if (net.rank() != 0) return;
    double due = 0;
    rill::simulated::run(net.size(), {.links = links()}, [&](auto& simulated) {
        const double found = coordinated(simulated, mixing, rounds);
        if (simulated.rank() == 0) due = found;
    });
    std::printf("\"%s\": {\"seconds\": %.6g, \"simulated\": %.6g, \"of_simulated\": %.6g}%s", name, seconds, due,
                seconds / due, then);
}

template <class Net>
void mix_delayed(Net& net, int rounds) {
    if (net.rank() == 0) std::printf("{");
    compare("fast", net, over_fast_links(), rounds, ",\n");
    compare("random", net, rill::topology::random_matching{}, rounds, "}\n");
}

template <class Net, class Mix>
void mix(Net& net, const Mix& mixing, double density, int rounds) {
    timed(net, values_of_many, [&](auto& workers, std::vector<float>& model) {
        rill::gossip replica{workers, mixing};
        auto mask = rill::compress::random_mask{.density = density}.bind(model.size());
        for (int round = 0; round < rounds; ++round) replica.mix(model, mask);
    });
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
            rill::in_process::run(few, [&](auto& net) { mix_delayed(net, number); });
        } else {
            const rill::mpi::environment library(rill::mpi::thread_level::multiple);
            rill::mpi::run([&](auto& net) { mix_delayed(net, number); });
        }
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "bench_gossip_ranks_mpi: %s\n", failed.what());
        return 1;
    }
}
