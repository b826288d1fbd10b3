// usage: bench_choosing_threads DIMENSION DENSITY SAMPLES RANKS
// Prints {"the choice": {"predicted": seconds, "seconds": [...]}, "another exchange": {...}, ...} of ranks that are
// threads.
#include "contest.hpp"

#include <rill/transport/in_process.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>

int main(int argc, char** argv) {
    if (argc != 5) return std::fprintf(stderr, "usage: %s DIMENSION DENSITY SAMPLES RANKS\n", argv[0]), 2;
    const bench::job todo{std::strtoull(argv[1], nullptr, 10), std::strtod(argv[2], nullptr), std::atoi(argv[3])};
    try {
        rill::in_process::run(std::atoi(argv[4]), [&](rill::in_process::endpoint& net) {
            bench::contest<rill::in_process::endpoint>(net, todo).run();
        });
    } catch (const std::exception& problem) {
        return std::fprintf(stderr, "%s\n", problem.what()), 1;
    }
}
