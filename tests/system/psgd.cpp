#include <rill/system/psgd.hpp>

#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

using namespace rill;

TEST_CASE("psgd: an alias for its composition, with the chosen options") {
    const auto plan = systems::psgd(train::sgd{.momentum = 0.5}, train::constant_rate{0.1});
    static_assert(train::Strategy<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    CHECK(plan == train::bsp{topology::ring{}, train::sgd{.momentum = 0.5}, train::constant_rate{0.1}});
}
