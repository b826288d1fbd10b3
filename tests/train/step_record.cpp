#include <rill/train/step_record.hpp>

#include <doctest/doctest.h>

using namespace rill::train;

TEST_CASE("step_record: names the ranks whose gradients were not finite") {
    step_record record{.step = 7};
    CHECK_FALSE(record.skipped());
    record.invalid = {{.rank = 3, .coordinate = 12}, {.rank = 5, .coordinate = 0}};
    CHECK(record.skipped());
    CHECK(describe_skip(record) ==
          "step 7 skipped: the gradient of rank 3 is not finite at coordinate 12, the gradient of rank 5 is not finite "
          "at coordinate 0");
}
