// usage: bench_sparse_cluster_computing DIMENSION SAMPLES PERCENT...
//
// What sums of sparse streams over split_allgather compute: 8 ranks in a simulated network, where messages take no
// time, all on one core. Prints for each density, lossless and with values of 4 bits, the median of the milliseconds
// of processor time of all ranks together, and a hash of the result, which is the same before and after any change
// that keeps the bits.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>

#include "../shared/inputs.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr int ranks = 8;

double processor_milliseconds() { return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC; }

rill::stream<float> input_of(int rank, std::size_t dimension, double density) {
    const bench::sparse_input chosen = bench::random_sparse(dimension, density, static_cast<std::uint64_t>(rank));
    rill::stream<float> made(dimension);
    for (std::size_t j = 0; j < chosen.indices.size(); ++j) made.push_back(chosen.indices[j], chosen.values[j]);
    return made;
}

std::uint64_t hash_of(const rill::stream<float>& x) {
    std::uint64_t hash = x.is_dense();
    for (const std::uint32_t each : x.indices()) hash = rill::mix64(hash, each);
    for (const float each : x.values()) hash = rill::mix64(hash, std::bit_cast<std::uint32_t>(each));
    return hash;
}

/// All ranks are fibers of one thread: a call lasts from the first rank's start to the last one's end.
struct stretch {
    double start = 0, end = 0;
};

void measure(std::size_t dimension, std::size_t samples, double percent, bool lossy) {
    rill::stream_codings codings;
    if (lossy) codings.contribution = codings.copy = rill::compress::qsgd{.bits = 4}.coding();
    for (rill::coding* each : {&codings.contribution, &codings.partial, &codings.copy})
        each->indices = rill::index_coding::elias_fano;
    std::vector<stretch> calls(samples + 2);  // the first two are warm-up
    std::uint64_t hash = 0;
    rill::simulated::run(ranks, {}, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        const rill::stream<float> input = input_of(net.rank(), dimension, percent / 100);
        rill::stream<float> output;
        for (stretch& call : calls) {
            rill::barrier(workers);
            if (call.start == 0) call.start = processor_milliseconds();
            rill::all_reduce(workers, input, output, rill::aggregate::sum{}, codings);
            call.end = processor_milliseconds();
        }
        if (net.rank() == 0) hash = hash_of(output);
    });
    std::vector<double> taken;
    for (std::size_t i = 2; i < calls.size(); ++i) taken.push_back(calls[i].end - calls[i].start);
    std::sort(taken.begin(), taken.end());
    std::printf("%6g %% %-8s %8.2f ms  %016llx\n", percent, lossy ? "4 bits" : "lossless", taken[taken.size() / 2],
                static_cast<unsigned long long>(hash));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s DIMENSION SAMPLES PERCENT...\n", argv[0]);
        return 2;
    }
    try {
        for (int i = 3; i < argc; ++i)
            for (const bool lossy : {false, true})
                measure(static_cast<std::size_t>(std::atoll(argv[1])), static_cast<std::size_t>(std::atoll(argv[2])),
                        std::atof(argv[i]), lossy);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
