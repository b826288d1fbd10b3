#include <rill/topology/rank_sets.hpp>

#include <doctest/doctest.h>

using namespace rill::topology;

TEST_CASE("rank_sets: sets of more than 64 ranks") {
    rank_sets sets(3, 130);
    CHECK(sets.count() == 3);
    insert(sets[0], 5);
    insert(sets[0], 129);
    insert(sets[1], 64);
    CHECK(contains(sets[0], 129));
    CHECK(!contains(sets[0], 128));
    CHECK(!contains(sets[1], 129));
    CHECK(smallest(sets[0]) == 5);
    CHECK(largest(sets[0]) == 129);
    CHECK(smallest(sets[1]) == 64);
    CHECK(largest(sets[1]) == 64);
    CHECK(are_disjoint(sets[0], sets[1]));
    CHECK(is_larger(sets[0], sets[2]));
    CHECK(!is_larger(sets[2], sets[2]));
    CHECK(!is_larger(sets[0], sets[1]));
    CHECK(join(sets[1], sets[0]));
    CHECK(!join(sets[1], sets[0]));
    CHECK(is_larger(sets[1], sets[0]));
    CHECK(!are_disjoint(sets[0], sets[1]));
    CHECK(!are_equal(sets[0], sets[1]));

    sets.clear();
    CHECK(sets.count() == 0);
}
