#include <rill/system/master_worker.hpp>

#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace rill;

TEST_CASE("master_worker: strategies that wait for all workers, or for all but the slowest") {
    const train::sgd descent{.momentum = 0.5};
    const train::constant_rate rate{0.1};
    const auto all = systems::master_worker(descent, rate);
    static_assert(train::Strategy<std::remove_cv_t<decltype(all)>, in_process::endpoint>);
    CHECK(all == train::partial_bsp{topology::star{}, straggler::wait_all{}, descent, rate});
    CHECK(systems::sgd_ignoring_slowest(2, descent, rate) ==
          train::partial_bsp{topology::star{}, straggler::tolerate{2}, descent, rate});
}
