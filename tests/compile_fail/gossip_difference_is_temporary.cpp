// expect: rill::gossip: compress::difference is a temporary or const
#include <rill/collective/group.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip replica{workers, rill::topology::ring_neighbours{}};
    const rill::compress::difference differences{rill::compress::top_k{.density = 0.01}, 0.05};
#ifdef RILL_FIXED
    auto codec = differences.bind(model.size());
    replica.mix(model, codec);
#else
    replica.mix(model, differences.bind(model.size()));
#endif
}
