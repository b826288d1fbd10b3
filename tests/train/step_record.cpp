#include <rill/core/time.hpp>
#include <rill/train/step_record.hpp>
#include <rill/train/stopwatch.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

using namespace rill::train;

TEST_CASE("stopwatch: the whole time is that until now, with what has passed since the last lap") {
    rill::simulated::run(1, {}, [](rill::simulated::endpoint& net) {
        net.sleep_until(net.now() + rill::milliseconds(1));
        stopwatch clock(net);
        net.sleep_until(net.now() + rill::milliseconds(2));
        CHECK(clock.lap() == rill::milliseconds(2));
        net.sleep_until(net.now() + rill::milliseconds(3));
        CHECK(clock.total() == rill::milliseconds(5));
        CHECK(clock.lap() == rill::milliseconds(3));
    });
}

TEST_CASE("step_record: names the ranks whose gradients were not finite") {
    step_record record{.step = 7};
    CHECK_FALSE(record.skipped());
    record.invalid = {{.rank = 3, .coordinate = 12}, {.rank = 5, .coordinate = 0}};
    CHECK(record.skipped());
    CHECK(describe_skip(record) ==
          "step 7 skipped: the gradient of rank 3 is not finite at coordinate 12, the gradient of rank 5 is not finite "
          "at coordinate 0");
}
