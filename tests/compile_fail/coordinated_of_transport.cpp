// expect: rill::gossip: the first argument is not a group
#include <rill/collective/group.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

void work(rill::in_process::endpoint& net) {
#ifdef RILL_FIXED
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip saps{workers, rill::topology::random_matching{}, rill::coordinated{}};
#else
    rill::gossip saps{net, rill::topology::random_matching{}, rill::coordinated{}};
#endif
}
