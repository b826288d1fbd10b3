#include <rill/system/rna.hpp>

#include <rill/train/replica_plan.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

using namespace rill;

TEST_CASE("rna: its composition, with the chosen options") {
    const auto plan = systems::rna({.probes = 3, .staleness = 5}, train::sgd{.momentum = 0.5}, train::constant_rate{1});
    static_assert(train::ReplicaPlan<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    CHECK(plan.trigger == straggler::two_choices{3});
    CHECK(plan.staleness == straggler::bounded{5});
    CHECK(plan.update == train::descent{train::sgd{.momentum = 0.5}, train::constant_rate{1}});
}

TEST_CASE("rna: in groups, each with its rounds") {
    const train::grouping groups{.alike = {.members = {0, 2}}, .every = 7};
    const auto plan = systems::grouped_rna(groups, {.probes = 1}, train::sgd{}, train::constant_rate{1});
    static_assert(train::ReplicaPlan<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    CHECK(plan.within.trigger == straggler::two_choices{1});
    CHECK(plan.groups.alike.members == std::vector<rank_t>{0, 2});
    CHECK(plan.groups.every == 7);
}
