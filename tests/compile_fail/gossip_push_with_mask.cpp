// expect: rill::gossip: the mixing is not doubly stochastic, so that push-sum divides each model by one weight
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip replica{workers, rill::topology::directed{}};
#ifdef RILL_FIXED
    replica.mix(model);
#else
    auto mask = rill::compress::random_mask{.density = 0.01}.bind(model.size());
    replica.mix(model, mask);
#endif
}
