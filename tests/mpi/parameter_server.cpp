#include <rill/aggregate/add.hpp>
#include <rill/core/contract.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

/// Each worker pushes 20 times, dense and by keys in turn. The final model holds all of it.
template <class Age>
void check_pushes(rill::mpi::endpoint& net, const rill::server_options& options, Age age) {
    std::vector<double> model(1000), gradient(1000, 1.0), values(2);
    const std::vector<std::uint32_t> keys{7, 900};
    rill::stream<double> stream(1000);
    for (const std::uint32_t key : keys) stream.push_back(key, 1.0);
    rill::parameter_server replica{net, options, age, rill::aggregate::add{}, model};
    if (replica.is_server()) return static_cast<void>(replica.pull(model));
    for (int step = 0; step < 10; ++step) {
        replica.push(gradient, *replica.pull(model));
        CHECK(model[0] >= step);
        replica.push(stream, *replica.pull(keys, values));
        CHECK(values[1] >= 2 * step + 1);
    }
    replica.retire();
    CHECK(!replica.pull(model));
    CHECK(model[0] == 10.0 * replica.workers());
    CHECK(model[7] == 20.0 * replica.workers());
    CHECK(model[900] == 20.0 * replica.workers());
}

}  // namespace

TEST_CASE("parameter_server: dedicated servers count each push once") {
    rill::mpi::endpoint net{MPI_COMM_WORLD};
    for (int servers = 1; servers < net.size(); ++servers) {
        check_pushes(net, {.servers = servers}, rill::straggler::unbounded{});
        check_pushes(net, {.servers = servers}, rill::straggler::bounded{2});
    }
}

TEST_CASE("parameter_server: servers that work too count each push once, where activities run alone") {
    rill::mpi::endpoint net{MPI_COMM_WORLD};
    const rill::server_options options{.servers = net.size(), .dedicated = false};
    if (net.activities_run_alone())
        check_pushes(net, options, rill::straggler::bounded{2});
    else
        CHECK_THROWS_AS(check_pushes(net, options, rill::straggler::bounded{2}), rill::contract_violation);
}
