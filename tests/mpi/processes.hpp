// Groups of the first processes of MPI_COMM_WORLD.
#pragma once

#include <rill/transport/mpi.hpp>

#include <map>

namespace processes {

inline int count() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}
inline int rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/// A communicator of the first `ranks` processes, which is kept; MPI_COMM_NULL elsewhere. Collective over all.
inline MPI_Comm first(int ranks) {
    static std::map<int, MPI_Comm> made;
    const auto [known, fresh] = made.try_emplace(ranks, MPI_COMM_NULL);
    if (fresh) MPI_Comm_split(MPI_COMM_WORLD, rank() < ranks ? 0 : MPI_UNDEFINED, rank(), &known->second);
    return known->second;
}

/// Runs `body(net)` on the first `ranks` processes; the others do nothing.
template <class Body>
void run(int ranks, Body&& body, const rill::mpi::options& chosen = {}) {
    if (const MPI_Comm group = first(ranks); group != MPI_COMM_NULL) rill::mpi::run(group, body, chosen);
}

}  // namespace processes
