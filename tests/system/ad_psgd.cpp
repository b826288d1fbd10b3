#include <rill/system/ad_psgd.hpp>

#include <rill/topology/anyone.hpp>
#include <rill/train/replica_plan.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <type_traits>

using namespace rill;

TEST_CASE("ad_psgd: its composition, with the chosen options") {
    const auto plan = systems::ad_psgd(train::sgd{.momentum = 0.5}, train::constant_rate{1}, topology::anyone{});
    static_assert(train::ReplicaPlan<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    static_assert(std::same_as<decltype(plan.pairing), topology::anyone>);
    CHECK(plan.update == train::descent{train::sgd{.momentum = 0.5}, train::constant_rate{1}});
    const auto usual = systems::ad_psgd(train::sgd{}, train::constant_rate{1});
    static_assert(std::same_as<decltype(usual.pairing), topology::bipartite>);
}
