// expect: rill::pair_averaging: the transport does not model ConcurrentTransport, so no rank can answer while it
// mentions: use in_process, simulated, tcp, or mpi with MPI_THREAD_MULTIPLE
#include <rill/protocol/pair_averaging.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/descent.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using transport = rill::in_process::endpoint;
#else
struct transport : rill::in_process::endpoint {
    void spawn() = delete;
};
#endif

void work(transport& net, const std::vector<float>& model) {
    rill::pair_averaging replica{net, rill::topology::bipartite{}, rill::train::descent{}, model};
}
