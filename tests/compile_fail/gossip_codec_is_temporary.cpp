// expect: rill::collective: the compressor is a temporary
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip replica{workers, rill::topology::ring_neighbours{}};
#ifdef RILL_FIXED
    auto codec = rill::compress::random_mask{.density = 0.01}.bind(model.size());
    replica.mix(model, codec);
#else
    replica.mix(model, rill::compress::random_mask{.density = 0.01}.bind(model.size()));
#endif
}
