// expect: rill::pair_averaging: the model's elements are no floating-point numbers, which cannot be halved
#include <rill/aggregate/add.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using element = float;
#else
using element = int;
#endif

void work(rill::in_process::endpoint& net, const std::vector<element>& model) {
    rill::pair_averaging replica{net, rill::topology::bipartite{}, rill::aggregate::add{}, model};
}
