// expect: rill::parameter_server: takes a transport, server_options, a staleness, an update and the first
#include <rill/aggregate/add.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
#ifdef RILL_FIXED
    rill::parameter_server replica{net, {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}, model};
#else
    rill::parameter_server replica{net, {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}};
    (void)model;
#endif
}
