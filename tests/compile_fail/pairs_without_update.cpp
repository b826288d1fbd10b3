// expect: rill::pair_averaging: the policy after the pairing does not model Update for the model's elements
// mentions: use train::descent
#include <rill/protocol/pair_averaging.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using update = rill::train::descent<>;
#else
using update = rill::train::sgd;
#endif

void work(rill::in_process::endpoint& net, const std::vector<float>& model) {
    rill::pair_averaging replica{net, rill::topology::bipartite{}, update{}, model};
}
