// expect: rill::parameter_server: the update takes whole models, but a stream is pushed
#include <rill/aggregate/add.hpp>
#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/in_process.hpp>

#include <vector>

#ifdef RILL_FIXED
using update = rill::aggregate::add;
#else
using update = rill::aggregate::mean_of_latest;
#endif

void work(rill::in_process::endpoint& net, std::vector<float>& model) {
    rill::parameter_server replica{net, {.servers = 2}, rill::straggler::bounded{3}, update{}, model};
    replica.push(rill::stream<float>(model.size()), *replica.pull(model));
}
