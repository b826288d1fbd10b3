// expect: rill::parameter_server: the stream has other elements than the model
#include <rill/aggregate/add.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using element = float;
#else
using element = double;
#endif

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::parameter_server replica{net, {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}, model};
    replica.push(rill::stream<element>(model.size()), *replica.pull(model));
}
