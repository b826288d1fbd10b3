#include <rill/system/eager_sgd.hpp>

#include <rill/straggler/solo.hpp>
#include <rill/train/replica_plan.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <concepts>

using namespace rill;

TEST_CASE("eager_sgd: its composition, with the chosen options") {
    const auto plan = systems::eager_sgd(train::sgd{.momentum = 0.5}, train::constant_rate{1}, straggler::solo{});
    static_assert(train::ReplicaPlan<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    static_assert(std::same_as<decltype(plan.trigger), straggler::solo>);
    CHECK(plan.update == train::descent{train::sgd{.momentum = 0.5}, train::constant_rate{1}});
    const auto usual = systems::eager_sgd(train::sgd{}, train::constant_rate{1});
    static_assert(std::same_as<decltype(usual.trigger), straggler::majority>);
}
