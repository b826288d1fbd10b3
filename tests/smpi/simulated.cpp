// Prints the results of collectives over the mpi transport among processes that SimGrid simulates, as in_process.cpp
// does.
#include <rill/transport/mpi.hpp>

#include "digests.hpp"

int main() {
    const rill::mpi::environment library(rill::mpi::thread_level::single);
    digests::print([](auto shape) {
        std::vector<std::uint64_t> each;
        rill::mpi::run([&](rill::mpi::endpoint& net) {
            const std::uint64_t mine = digests::of(net, shape);
            if (net.rank() == 0) each.resize(static_cast<std::size_t>(net.size()));
            MPI_Gather(&mine, 1, MPI_UINT64_T, each.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        });
        return each;
    });
}
