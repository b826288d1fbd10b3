// Times the sparse all_reduce of rill among threads (split_allgather). Prints the seconds of each sample as JSON: the
// slowest rank's.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>

#include "../foundation/workload.hpp"
#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>

namespace {

using endpoint = rill::in_process::endpoint;

/// Each coordinate with the given chance, others on each rank.
rill::stream<float> input_of(int rank, std::size_t dimension, double density) {
    const bench::sparse_input chosen = bench::random_sparse(dimension, density, static_cast<std::uint64_t>(rank));
    rill::stream<float> made(dimension);
    for (const std::uint32_t each : chosen.indices) made.push_back(each, foundation::entry(rank, each));
    return made;
}

/// Row `net.rank()` of `seconds`. The first two samples are warm-up and not kept.
void time_rank(endpoint& net, std::size_t dimension, double density, std::vector<double>& seconds) {
    rill::group workers{net, rill::topology::split_allgather{}};
    const rill::stream<float> input = input_of(net.rank(), dimension, density);
    rill::stream<float> output;
    for (std::size_t sample = 0; sample < seconds.size() + 2; ++sample) {
        rill::barrier(workers);
        const rill::time_point start = net.now();
        rill::all_reduce(workers, input, output);
        if (sample >= 2) seconds[sample - 2] = (net.now() - start).seconds();
    }
    const auto expected =
        bench::dense_sum(dimension, net.size(), [&](int rank) { return input_of(rank, dimension, density); });
    bench::require_equal(output, expected, "sum");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s RANKS DIMENSION DENSITY SAMPLES\n", argv[0]);
        return 2;
    }
    try {
        const int ranks = std::atoi(argv[1]);
        const auto samples = static_cast<std::size_t>(std::atoi(argv[4]));
        std::vector<std::vector<double>> seconds(static_cast<std::size_t>(ranks), std::vector<double>(samples));
        rill::in_process::run(ranks, [&](endpoint& net) {
            time_rank(net, static_cast<std::size_t>(std::atoll(argv[2])), std::atof(argv[3]),
                      seconds[static_cast<std::size_t>(net.rank())]);
        });
        std::vector<double> slowest(samples);
        for (const auto& rank : seconds)
            for (std::size_t i = 0; i < samples; ++i) slowest[i] = std::max(slowest[i], rank[i]);
        foundation::print_as_json(slowest);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
