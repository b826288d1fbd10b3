#include <rill/system/fault_tolerant_tree.hpp>

#include <rill/core/time.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace rill;

TEST_CASE("fault_tolerant_tree: an alias for its composition, with the chosen options") {
    const topology::backup_tree tree{3, detect::fixed(milliseconds(500))};
    const auto plan = systems::fault_tolerant_tree(train::sgd{.momentum = 0.5}, train::constant_rate{0.1}, tree);
    static_assert(train::Strategy<std::remove_cv_t<decltype(plan)>, simulated::endpoint>);
    CHECK(plan == train::bsp{tree, train::sgd{.momentum = 0.5}, train::constant_rate{0.1}});
}
