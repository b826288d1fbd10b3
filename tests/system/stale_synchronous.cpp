#include <rill/system/stale_synchronous.hpp>

#include <rill/train/replica_plan.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <span>
#include <type_traits>
#include <vector>

using namespace rill;

namespace {

/// How far the first of two workers gets while the second computes its first gradient.
int lead_of_the_fast(std::uint32_t staleness, bool dedicated) {
    int lead = 0;
    simulated::run(dedicated ? 3 : 2, {}, [&](auto& net) {
        std::vector<double> model(5), gradient(5);
        const auto plan = systems::stale_synchronous({.dedicated = dedicated, .staleness = staleness}, train::sgd{},
                                                     train::constant_rate{1});
        auto replica = plan.template bind<double>(net, std::span<const double>(model));
        const time_point begin = net.now();
        int step = 0;
        while (const auto held = replica.pull(model)) {
            if (step == 20) {
                replica.retire();
                continue;
            }
            net.sleep_until(net.rank() == 1 && step == 0 ? begin + seconds(1) : net.now() + milliseconds(1));
            replica.push(gradient, *held);
            ++step;
            if (net.rank() == 0 && net.now() < begin + seconds(1)) lead = step;
        }
    });
    return lead;
}

}  // namespace

TEST_CASE("stale_synchronous: its composition, with the chosen options") {
    const auto plan = systems::stale_synchronous({.servers = 2, .dedicated = false, .staleness = 5},
                                                 train::sgd{.momentum = 0.5}, train::constant_rate{1});
    static_assert(train::ReplicaPlan<std::remove_cv_t<decltype(plan)>, simulated::endpoint>);
    CHECK(plan.servers == server_options{.servers = 2, .dedicated = false});
    CHECK(plan.staleness == straggler::bounded{5});
    CHECK(plan.update == train::descent{train::sgd{.momentum = 0.5}, train::constant_rate{1}});
}

TEST_CASE("stale_synchronous: a worker leads by as many gradients as it may, or by any number") {
    for (const bool dedicated : {true, false}) {
        CHECK(lead_of_the_fast(0, dedicated) == 1);
        CHECK(lead_of_the_fast(3, dedicated) == 4);
        CHECK(lead_of_the_fast(systems::unlimited, dedicated) == 20);
    }
}
