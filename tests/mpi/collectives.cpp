#include <rill/collective/group.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/mpi.hpp>

#include "../collective/cases.hpp"
#include "evidence.hpp"
#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using digests = std::vector<std::uint64_t>;

/// The results that this rank should get: process 0 computes them with threads and broadcasts them.
template <class Shape>
digests by_threads(const Shape& shape, int ranks, MPI_Comm among) {
    std::vector<digests> each(static_cast<std::size_t>(ranks));
    if (processes::rank() == 0)
        rill::in_process::run(ranks, [&](auto& net) {
            rill::group workers{net, shape};
            each[static_cast<std::size_t>(net.rank())] = evidence::of(workers).digests();
        });
    digests own;
    for (int rank = 0; rank < ranks; ++rank) {
        auto count = static_cast<int>(each[static_cast<std::size_t>(rank)].size());
        MPI_Bcast(&count, 1, MPI_INT, 0, among);
        digests told = each[static_cast<std::size_t>(rank)];
        told.resize(static_cast<std::size_t>(count));
        MPI_Bcast(told.data(), count, MPI_UINT64_T, 0, among);
        if (rank == processes::rank()) own = told;
    }
    return own;
}

/// Describes the first result whose bits differ; empty if there is none.
template <class Shape>
std::string difference(const Shape& shape, int ranks, const rill::mpi::options& chosen, const digests& expected) {
    evidence::record seen;
    const auto body = [&](auto& net) {
        rill::group workers{net, shape};
        seen = evidence::of(workers);
    };
    processes::run(ranks, body, chosen);
    const std::string where = std::string(Shape::name) + " among " + std::to_string(ranks) + ", at most " +
                              std::to_string(chosen.eager_bytes) + " bytes at once: ";
    if (expected.size() != seen.digests().size()) return where + "another number of results";
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (expected[i] != seen.digests()[i]) return where + seen.label(i);
    return "";
}

}  // namespace

TEST_CASE(
    "collectives give the bits of in_process, whether messages are sent at once, unasked in pieces, or announced") {
    for (const int ranks : cases::rank_counts) {
        if (ranks > processes::count() || processes::first(ranks) == MPI_COMM_NULL) continue;
        cases::for_each_topology([&](auto shape) {
            const digests expected = by_threads(shape, ranks, processes::first(ranks));
            CHECK(difference(shape, ranks, {}, expected) == "");
            CHECK(difference(shape, ranks, {.eager_bytes = 1024}, expected) == "");
            for (const std::size_t room : {std::size_t{5000}, rill::mpi::options{}.mailbox_bytes})
                CHECK(difference(shape, ranks, {.mailbox_bytes = room, .eager_bytes = 1024, .sends_unasked = true},
                                 expected) == "");
        });
    }
}
