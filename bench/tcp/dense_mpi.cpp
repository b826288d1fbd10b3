// usage: mpirun bench_tcp_dense_mpi HOST SHAPE SIZE CALLS SAMPLES
// all_reduce of SIZE floats over rill::tcp and MPI_Allreduce, by turns in the same processes. SHAPE is the topology:
// recursive_doubling or ring. Prints the seconds of a call on the slowest rank, the mean of CALLS, in each sample. The
// ranks meet at HOST, where rank 0 is.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>

#include "../foundation/workload.hpp"
#include "../shared/expected.hpp"
#include "beside_mpi.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

template <class Shape>
void measure(rill::tcp::endpoint& net, std::size_t size, int calls, int samples) {
    rill::group workers{net, Shape{}};
    const int ranks = net.size();
    std::vector<float> input(size), output(size), expected(size);
    foundation::fill(input, net.rank());
    for (std::size_t i = 0; i < size; ++i) expected[i] = foundation::entry_of_sum(ranks, i);
    std::vector<double> over_tcp, over_mpi;
    for (int sample = -1; sample < samples; ++sample) {  // the first one makes the connections
        std::fill(output.begin(), output.end(), -1.0F);
        const double tcp = bench::seconds_of_tcp(net, calls, [&] { rill::all_reduce(workers, input, output); });
        bench::require_equal(output, expected, "rill::tcp");
        std::fill(output.begin(), output.end(), -1.0F);
        const double mpi = bench::seconds_of_mpi(calls, [&] {
            MPI_Allreduce(input.data(), output.data(), static_cast<int>(size), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        });
        bench::require_equal(output, expected, "MPI_Allreduce");
        if (sample < 0) continue;
        over_tcp.push_back(tcp);
        over_mpi.push_back(mpi);
    }
    if (net.rank() != 0) return;
    std::printf("{");
    bench::print("tcp", over_tcp, ", ");
    bench::print("mpi", over_mpi, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
    const rill::mpi::environment library;
    if (argc != 6) return std::fprintf(stderr, "usage: mpirun %s HOST SHAPE SIZE CALLS SAMPLES\n", argv[0]), 2;
    const auto measure_shape =
        std::string(argv[2]) == "ring" ? measure<rill::topology::ring> : measure<rill::topology::recursive_doubling>;
    try {
        rill::tcp::run(
            [&](rill::tcp::endpoint& net) {
                measure_shape(net, std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]), std::atoi(argv[5]));
            },
            bench::options_at(argv[1]));
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
