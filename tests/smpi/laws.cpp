// Checks the laws of a transport for mpi, among processes that SimGrid simulates, one thread each. Prints each law that
// does not hold.
#include <rill/testing/transport_laws.hpp>
#include <rill/transport/mpi.hpp>

#include "../mpi/processes.hpp"

#include <cstddef>
#include <cstdio>

int main() {
    const rill::mpi::environment library(rill::mpi::thread_level::single);
    const rill::mpi::options chosen{.mailbox_bytes = 4096};
    const rill::testing::transport_limits limits{.mailbox_bytes = chosen.mailbox_bytes,
                                                 .lends = false,
                                                 .copied_bytes = chosen.eager_bytes,
                                                 .one_process = false,
                                                 .large_bytes = std::size_t{1} << 20,
                                                 .most_ranks = processes::count()};
    int laws = 0, broken = 0;
    rill::testing::for_each_law([&](int ranks, auto&& body) { processes::run(ranks, body, chosen); }, limits,
                                [&](const char* name, const rill::testing::law_outcome& outcome) {
                                    ++laws;
                                    if (outcome.held) return;
                                    ++broken;
                                    std::printf("rank %d: %s: %s\n", processes::rank(), name, outcome.what.c_str());
                                });
    if (processes::rank() == 0) std::printf("%d laws among %d ranks\n", laws, processes::count());
    return broken == 0 && laws >= 60 ? 0 : 1;
}
