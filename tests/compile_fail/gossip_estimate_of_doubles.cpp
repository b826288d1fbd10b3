// expect: rill::gossip: the estimate has other elements than the model
#include <rill/collective/group.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using estimate = std::vector<float>;
#else
using estimate = std::vector<double>;
#endif

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip push{workers, rill::topology::directed{.edges = {{0, 1}, {1, 0}}}};
    estimate z(model.size());
    push.mix(model);
    push.debias(model, z);
}
