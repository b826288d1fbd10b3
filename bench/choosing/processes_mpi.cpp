// usage: mpirun bench_choosing_processes_mpi DIMENSION DENSITY SAMPLES
// As threads.cpp, of ranks that are processes.
#include "contest.hpp"

#include <rill/transport/mpi.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    if (argc != 4) return std::fprintf(stderr, "usage: %s DIMENSION DENSITY SAMPLES\n", argv[0]), 2;
    const bench::job todo{std::strtoull(argv[1], nullptr, 10), std::strtod(argv[2], nullptr), std::atoi(argv[3])};
    const rill::mpi::environment library;
    rill::mpi::run([&](auto& net) { bench::contest<rill::mpi::endpoint>(net, todo).run(); });
}
