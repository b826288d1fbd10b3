// expect: rill::local_steps: takes a replica, how many steps as in
#include <rill/aggregate/add.hpp>
#include <rill/protocol/local_steps.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
#ifdef RILL_FIXED
    rill::pair_averaging replica{net, rill::topology::anyone{}, rill::aggregate::add{}, model};
    rill::local_steps steps{replica, {.every = 32}, rill::aggregate::add{}, model};
#else
    rill::pair_averaging replica{net, rill::topology::anyone{}, rill::aggregate::add{}, model};
    rill::local_steps steps{replica, 32, rill::aggregate::add{}, model};
#endif
}
