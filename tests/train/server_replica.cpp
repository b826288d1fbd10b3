#include <rill/train/server_replica.hpp>

#include "replica_jobs.hpp"

#include <rill/core/error.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/system/stale_synchronous.hpp>
#include <rill/train/paced.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

using namespace rill;
using namespace jobs;

namespace on_servers {

constexpr train::sgd momentum{.momentum = 0.5};
constexpr train::constant_rate small{0.02};

/// A worker's gradients take a time of its own, so that in a simulated network they arrive in one order.
template <class Net, class Plan>
auto make(Net& net, const Plan& plan) {
    const train::paced model(net, spoilt_perceptron(net.rank(), {}), {.forward = milliseconds(1 + net.rank())});
    return make_asynchronous(net, model, plan, plan.servers.workers(net.size()));
}

}  // namespace on_servers

TEST_CASE("server_replica: workers learn, and end with the same parameters; a dedicated server keeps the first ones") {
    for (const bool dedicated : {true, false})
        on_transports(4, [&](auto& net) {
            const auto plan = systems::stale_synchronous(
                {.servers = 2, .dedicated = dedicated, .staleness = dedicated ? 3 : systems::unlimited},
                on_servers::momentum, on_servers::small);
            auto trainer = on_servers::make(net, plan);
            const auto first = copy_of_parameters(trainer);
            const auto own = retire_at(trainer, 60);
            const int workers = plan.servers.workers(net.size());
            CHECK(trainer.version() == 60 * std::uint64_t(workers));
            CHECK(!trainer.step());
            if (net.rank() >= workers) {
                CHECK(own == first);
                CHECK(trainer.step_number() == 0);
                return;
            }
            CHECK(has_learned(net, loss_of(first), own));
            CHECK(trainer.step_number() == 60);
            CHECK(trainer.counts() == train::push_counts{.counted = 60});
            const auto newest = trainer.replica().newest();
            CHECK(own == std::vector<float>(newest.begin(), newest.end()));
        });
}

TEST_CASE("server_replica: a trainer goes on where it was saved, bit for bit") {
    for (const bool dedicated : {true, false}) {
        const train::server_replica plan{server_options{.servers = 2, .dedicated = dedicated}, straggler::bounded{0},
                                         train::descent{on_servers::momentum, on_servers::small}};
        CHECK(resumes(4, [&](auto& net) { return on_servers::make(net, plan); }));
    }
}

TEST_CASE("server_replica: its timeout is that of the group's options, however long") {
    const train::server_replica plan{server_options{}, straggler::bounded{0},
                                     train::descent{on_servers::momentum, on_servers::small}};
    for (const duration timeout : {seconds(5), seconds(7200)})
        simulated::run(3, {}, [&](auto& net) {
            std::vector<double> model(2), gradient(2);
            auto replica = plan.template bind<double>(net, std::span<const double>(model), {.timeout = timeout});
            const auto held = replica.pull(model);
            const time_point begin = net.now();
            if (net.rank() == 0) {
                replica.push(gradient, *held);
                CHECK_THROWS_AS(replica.pull(model), rill::timeout);
                CHECK(net.now() >= begin + timeout);
                CHECK(net.now() < begin + timeout + seconds(1));
                replica.give_up(1);
                replica.end();
                CHECK(!replica.pull(model));
            } else if (net.rank() == 1) {
                net.sleep_until(begin + timeout + seconds(2));
            }
        });
}
