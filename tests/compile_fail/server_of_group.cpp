// expect: rill::parameter_server: the first argument is a group
// mentions: workers.net
#include <rill/aggregate/add.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::group<rill::in_process::endpoint, rill::topology::ring>& workers, std::vector<float>& model) {
#ifdef RILL_FIXED
    rill::parameter_server replica{
        workers.net(), {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}, model};
#else
    rill::parameter_server replica{workers, {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}, model};
#endif
}
