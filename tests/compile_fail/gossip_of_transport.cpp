// expect: rill::gossip: the first argument is not a group
#include <rill/collective/group.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/in_process.hpp>

void work(rill::in_process::endpoint& net) {
#ifdef RILL_FIXED
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip replica{workers, rill::topology::ring_neighbours{}};
#else
    rill::gossip replica{net, rill::topology::ring_neighbours{}};
#endif
}
