#include <rill/train/select_classes.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace rill;
using namespace rill::train;

TEST_CASE("select_classes: the rows of the named classes, numbered in the order of the names") {
    const dataset data{
        .rows = 5, .columns = 2, .classes = 4, .features = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, .labels = {3, 0, 1, 3, 1}};
    const dataset some = select_classes(data, {1, 3});
    CHECK(some.rows == 4);
    CHECK(some.columns == 2);
    CHECK(some.classes == 2);
    CHECK(some.labels == std::vector<std::int32_t>{1, 0, 1, 0});
    CHECK(some.features == aligned_vector<float>{0, 1, 4, 5, 6, 7, 8, 9});
    CHECK(select_classes(data, {2}).rows == 0);
    CHECK_THROWS_AS(select_classes(data, {}), contract_violation);
}
