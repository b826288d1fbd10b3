// expect: rill::pair_averaging: the policy after the transport does not model Pairing, which says who may ask
// mentions: use topology::bipartite or anyone
#include <rill/protocol/pair_averaging.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/train/descent.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, const std::vector<float>& model) {
#ifdef RILL_FIXED
    rill::pair_averaging replica{net, rill::topology::anyone{}, rill::train::descent{}, model};
#else
    rill::pair_averaging replica{net, rill::train::descent{}, rill::topology::anyone{}, model};
#endif
}
