// expect: rill::collective: the output cannot be written to, because it is const or an expression; pass a vector
#include <rill/collective/broadcast.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using parameters = std::vector<float>;
#else
using parameters = const std::vector<float>;
#endif

void step(rill::in_process::endpoint& net, parameters& values) {
    rill::group workers{net, rill::topology::ring{}};
    rill::broadcast(workers, values, 0);
}
