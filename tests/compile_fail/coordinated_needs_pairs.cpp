// expect: rill::gossip: the mixing is not one of pairs that exchange
#include <rill/collective/group.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

void work(rill::in_process::endpoint& net) {
    rill::group workers{net, rill::topology::ring{}};
#ifdef RILL_FIXED
    rill::gossip saps{workers, rill::topology::random_matching{}, rill::coordinated{}};
#else
    rill::gossip saps{workers, rill::topology::exponential{}, rill::coordinated{}};
#endif
}
