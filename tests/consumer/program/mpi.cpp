// Ranks as processes of MPI.
#include "sums_up.hpp"

#include <rill/transport/mpi.hpp>

#include <cstdio>

int main() {
    const rill::mpi::environment library;
    bool right = false;
    rill::mpi::run([&](auto& net) {
        right = sums_up(net);
        std::printf("rank %d of %d has %s sums\n", net.rank(), net.size(), right ? "the right" : "wrong");
    });
    return right ? 0 : 1;
}
