// expect: rill::gossip: the second argument does not model Mixing
#include <rill/collective/group.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/in_process.hpp>

void work(rill::in_process::endpoint& net) {
    rill::group workers{net, rill::topology::ring{}};
#ifdef RILL_FIXED
    rill::gossip replica{workers, rill::topology::ring_neighbours{}};
#else
    rill::gossip replica{workers, rill::topology::ring{}};
#endif
}
