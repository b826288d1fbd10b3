// Processes that MPI has started and that also meet over rill::tcp, so that both take turns in them.
#pragma once

#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/transport/mpi.hpp>
#include <rill/transport/tcp.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

template <class T>
T over_all_ranks(T own, MPI_Datatype type, MPI_Op operation) {
    T all{};
    MPI_Allreduce(&own, &all, 1, type, operation, MPI_COMM_WORLD);
    return all;
}

/// Options with which the processes of MPI_COMM_WORLD meet at a free port of `host`, which is that of rank 0.
inline rill::tcp::options options_at(const std::string& host) {
    int rank = 0, ranks = 1, port = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
        namespace tcp = rill::tcp::detail;
        port = tcp::socket_address::local_of(tcp::listen_at(tcp::resolve(host + ":0", 0).front(), 1)).port();
    }
    port = over_all_ranks(port, MPI_INT, MPI_MAX);
    return {.rank = rank,
            .ranks = ranks,
            .meeting = host + ":" + std::to_string(port),
            .key = rill::tcp::key::from_text("a key that is no secret")};
}

/// The seconds of the slowest rank for each of `calls` calls.
template <class Call>
double seconds_of_mpi(int calls, Call&& call) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call();
    return over_all_ranks(MPI_Wtime() - start, MPI_DOUBLE, MPI_MAX) / calls;
}
/// The same of calls over rill::tcp. Ranks that have finished sleep until all have: waits of MPI would take cores from
/// those that still work.
template <class Call>
double seconds_of_tcp(rill::tcp::endpoint& net, int calls, Call&& call) {
    rill::group all{net, rill::topology::recursive_doubling{}};
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call();
    const double own = MPI_Wtime() - start;
    rill::barrier(all);
    return over_all_ranks(own, MPI_DOUBLE, MPI_MAX) / calls;
}

inline void print(const char* name, const std::vector<double>& all, const char* end) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < all.size(); ++i) std::printf("%s%.9f", i == 0 ? "" : ", ", all[i]);
    std::printf("]%s", end);
}

}  // namespace bench
