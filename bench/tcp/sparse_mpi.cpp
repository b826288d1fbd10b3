// usage: mpirun bench_tcp_sparse_mpi HOST DIMENSION DENSITY SAMPLES
// Sums of sparse streams at random, split_allgather with Elias-Fano indices, over rill::tcp and over rill::mpi, by
// turns in the same processes. Prints the seconds of the slowest rank in each sample. The ranks meet at HOST, where
// rank 0 is.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/indices.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/split_allgather.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"
#include "beside_mpi.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

namespace {

struct job {
    std::size_t dimension = 0;
    double density = 0;
    int samples = 1;
};

/// Small integers, so that every order of summation gives the same sum.
rill::stream<float> input_of(int rank, const job& todo) {
    const auto chosen = bench::random_sparse(todo.dimension, todo.density, static_cast<std::uint64_t>(rank));
    rill::stream<float> made(todo.dimension);
    for (const std::uint32_t i : chosen.indices)
        made.push_back(i, static_cast<float>(i % 1024) + static_cast<float>(rank + 1));
    return made;
}

void measure(rill::tcp::endpoint& over_tcp, rill::mpi::endpoint& over_mpi, const job& todo) {
    rill::group by_tcp{over_tcp, rill::topology::split_allgather{}};
    rill::group by_mpi{over_mpi, rill::topology::split_allgather{}};
    const rill::stream<float> input = input_of(over_tcp.rank(), todo);
    const auto expected =
        bench::dense_sum(todo.dimension, over_tcp.size(), [&](int rank) { return input_of(rank, todo); });
    rill::stream_codings codings;
    for (rill::coding* each : {&codings.contribution, &codings.partial, &codings.copy})
        each->indices = rill::index_coding::elias_fano;
    std::vector<double> tcp, mpi;
    rill::stream<float> output;  // keeps its memory, as in a training loop
    const auto sum = [&](auto& workers, const char* name, auto&& seconds_of) {
        const double seconds =
            seconds_of([&] { rill::all_reduce(workers, input, output, rill::aggregate::sum{}, codings); });
        bench::require_equal(output, expected, name);
        return seconds;
    };
    for (int sample = -1; sample < todo.samples; ++sample) {  // the first one makes the connections
        const double a =
            sum(by_tcp, "rill::tcp", [&](auto&& call) { return bench::seconds_of_tcp(over_tcp, 1, call); });
        const double b = sum(by_mpi, "rill::mpi", [&](auto&& call) { return bench::seconds_of_mpi(1, call); });
        if (sample < 0) continue;
        tcp.push_back(a);
        mpi.push_back(b);
    }
    if (over_tcp.rank() != 0) return;
    std::printf("{");
    bench::print("tcp", tcp, ", ");
    bench::print("mpi", mpi, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
    const rill::mpi::environment library;
    if (argc != 5) return std::fprintf(stderr, "usage: mpirun %s HOST DIMENSION DENSITY SAMPLES\n", argv[0]), 2;
    const job todo{std::strtoull(argv[2], nullptr, 10), std::strtod(argv[3], nullptr), std::atoi(argv[4])};
    try {
        rill::mpi::run([&](rill::mpi::endpoint& over_mpi) {
            rill::tcp::run([&](rill::tcp::endpoint& over_tcp) { measure(over_tcp, over_mpi, todo); },
                           bench::options_at(argv[1]));
        });
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
