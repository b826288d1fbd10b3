// expect: rill::gossip: compress::difference keeps the sum of its neighbours' replicas, and the mixing changes
// neighbours
#include <rill/collective/group.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::group workers{net, rill::topology::ring{}};
#ifdef RILL_FIXED
    rill::gossip replica{workers, rill::topology::ring_neighbours{}};
#else
    rill::gossip replica{workers, rill::topology::random_matching{}};
#endif
    auto codec = rill::compress::difference{rill::compress::top_k{.density = 0.01}, 0.2}.bind(model.size());
    replica.mix(model, codec);
}
