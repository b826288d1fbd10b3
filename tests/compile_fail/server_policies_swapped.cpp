// expect: rill::parameter_server: the policy after the options does not model Staleness, which says how far a worker
// mentions: use straggler::bounded, in_step or unbounded
#include <rill/aggregate/add.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, const std::vector<float>& model) {
#ifdef RILL_FIXED
    rill::parameter_server replica{net, {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}, model};
#else
    rill::parameter_server replica{net, {.servers = 2}, rill::aggregate::add{}, rill::straggler::bounded{3}, model};
#endif
}
