// expect: rill::collective: the compressor is not bound to this worker
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip saps{workers, rill::topology::random_matching{}, rill::coordinated{.rounds = 9}};
#ifdef RILL_FIXED
    auto mask = rill::compress::random_mask{.density = 0.01}.bind(model.size());
#else
    rill::compress::random_mask mask{.density = 0.01};
#endif
    while (saps.next()) saps.mix(model, mask);
}
