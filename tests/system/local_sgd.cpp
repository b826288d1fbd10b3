#include <rill/system/local_sgd.hpp>

#include <rill/train/replica_plan.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <span>
#include <type_traits>
#include <vector>

using namespace rill;

TEST_CASE("local_sgd: its composition, with the chosen options") {
    const auto plan = systems::local_sgd({.every = 7, .outer = {.momentum = 0.9, .nesterov = true}, .outer_rate = 0.7},
                                         train::sgd{}, train::constant_rate{1});
    static_assert(train::ReplicaPlan<std::remove_cv_t<decltype(plan)>, simulated::endpoint>);
    CHECK(plan.steps == local_step_options{7});
    CHECK(plan.update == train::descent{train::sgd{}, train::constant_rate{1}});
    CHECK(plan.replica.update ==
          train::descent{train::sgd{.momentum = 0.9, .nesterov = true}, train::constant_rate{0.7}, false});
}

TEST_CASE("local_sgd: after so many steps each, ranks go on from the mean of their models") {
    const auto plan = systems::local_sgd({.every = 3}, train::sgd{}, train::constant_rate{1});
    simulated::run(4, {}, [&](auto& net) {
        std::vector<double> model(2);
        auto replica = plan.template bind<double>(net, std::span<const double>(model));
        int step = 0;
        while (const auto held = replica.pull(model)) {
            const double rounds = step / 3, own = step % 3;
            CHECK(held->version == std::uint64_t(rounds));
            CHECK(model[0] == -(3 * rounds * 1.5 + own * net.rank()));
            if (++step == 8) replica.end();
            if (step < 8) replica.push(std::vector<double>(2, net.rank()), *held);
        }
        CHECK(model[1] == -(3 + 3 + 1) * 1.5);
        CHECK(replica.version() == 3);
    });
}
