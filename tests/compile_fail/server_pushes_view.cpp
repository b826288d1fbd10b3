// expect: rill::parameter_server: a stream_view is pushed; pass the rill::stream
#include <rill/aggregate/add.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::parameter_server replica{net, {.servers = 2}, rill::straggler::bounded{3}, rill::aggregate::add{}, model};
    const rill::stream<float> gradient(model.size());
#ifdef RILL_FIXED
    replica.push(gradient, *replica.pull(model));
#else
    replica.push(gradient.view(), *replica.pull(model));
#endif
}
