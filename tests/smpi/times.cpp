// The times that SimGrid gives rill's schedules: an MPI program that sends the frames of an all_reduce without rill's
// transport.
#include <rill/core/segment.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>

#include <mpi.h>

#include "times.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

std::size_t bytes_of(rill::part_range parts, int of, std::size_t floats) {
    std::size_t bytes = rill::wire::header_bytes;
    for (int p = parts.first; p < parts.last; ++p)
        bytes += sizeof(float) * rill::split(floats, static_cast<std::size_t>(of), static_cast<std::size_t>(p)).size();
    return bytes;
}

template <rill::Schedule Plan>
void follow(const Plan& plan, std::size_t floats, std::vector<char>& out, std::vector<char>& in) {
    std::vector<MPI_Request> requests;
    const auto size = [&](const rill::transfer& one) {
        return static_cast<int>(bytes_of(one.parts, plan.parts(), floats));
    };
    for (int round = 0; round < plan.rounds(); ++round) {
        requests.clear();
        for (int i = 0; i < plan.receives(round); ++i) {
            const rill::transfer from = plan.receive(round, i);
            MPI_Irecv(in.data(), size(from), MPI_BYTE, from.peer, round, MPI_COMM_WORLD, &requests.emplace_back());
        }
        for (int i = 0; i < plan.sends(round); ++i) {
            const rill::transfer to = plan.send(round, i);
            MPI_Isend(out.data(), size(to), MPI_BYTE, to.peer, round, MPI_COMM_WORLD, &requests.emplace_back());
        }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }
}

template <class Shape>
void print(const Shape& shape, std::size_t floats) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<char> out(rill::wire::header_bytes + floats * sizeof(float)), in(out.size());
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    follow(shape.all_reduce(ranks, rank), floats, out, in);
    const double own = MPI_Wtime() - start;
    double slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) times::print(Shape::name, floats, std::llround(slowest * 1e9));
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    times::for_each([](auto shape, std::size_t floats) { print(shape, floats); });
    MPI_Finalize();
}
