// The same cases on all ranks. A rank prints what it has to say only if something failed on it; rank 0 says how it went
// where all went well. RILL_TEST_THREAD_LEVEL (single, funneled, serialized, multiple) is the level to ask for.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <rill/transport/mpi.hpp>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

using rill::mpi::thread_level;

thread_level wanted_level() {
    const char* const asked = std::getenv("RILL_TEST_THREAD_LEVEL");
    for (const thread_level level : {thread_level::single, thread_level::serialized, thread_level::multiple})
        if (asked != nullptr && std::string(asked) == name(level)) return level;
    return thread_level::funneled;
}

/// Whether some rank says so.
bool any_rank(bool here) {
    int mine = here ? 1 : 0, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all != 0;
}

}  // namespace

int main(int argc, char** argv) {
    const rill::mpi::environment library(wanted_level());
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    std::ostringstream said;
    doctest::Context context(argc, argv);
    context.setOption("no-colors", true);
    context.setCout(&said);
    const bool failed_here = context.run() != 0;
    const bool failed = any_rank(failed_here);
    if (failed_here || (rank == 0 && !failed))
        std::printf("rank %d of %d, thread level %s:\n%s", rank, ranks, name(library.provided()), said.str().c_str());
    std::fflush(stdout);
    return failed ? 1 : 0;
}
