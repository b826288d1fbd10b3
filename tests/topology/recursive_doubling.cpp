#include "counts.hpp"

#include <rill/topology/recursive_doubling.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

TEST_CASE("recursive_doubling: log2 P rounds, nearest rank first") {
    const auto s = recursive_doubling{}.all_reduce(8, 5);
    CHECK(s.rounds() == 3);
    CHECK(s.parts() == 1);
    CHECK(parts_sent(s) == 3);
    CHECK(s.send(0, 0).peer == 4);
    CHECK(s.send(1, 0).peer == 7);
    CHECK(s.send(2, 0).peer == 1);
}

TEST_CASE("recursive_doubling: the second rank of a pair only sends its input and receives the result") {
    for (int size : {3, 5, 6, 7, 13}) {
        const auto s = recursive_doubling{}.all_reduce(size, 1);
        CHECK(parts_sent(s) == 1);
        CHECK(s.send(0, 0).peer == 0);
        CHECK(s.receive(s.rounds() - 1, 0).peer == 0);
        CHECK(s.kind(0) == action::fold);
        CHECK(s.kind(s.rounds() - 1) == action::copy);
    }
}

TEST_CASE(
    "recursive_doubling: reduce_scatter sends at most N, in one round more than all_gather where P is a power of 2") {
    for (int size = 1; size <= 40; ++size)
        for (int rank = 0; rank < size; ++rank)
            CHECK(parts_sent(recursive_doubling{}.reduce_scatter(size, rank)) <= size);
    CHECK(recursive_doubling{}.reduce_scatter(16, 0).rounds() == 5);
    CHECK(recursive_doubling{}.all_gather(16, 0).rounds() == 4);
    CHECK(recursive_doubling{}.reduce_scatter(2, 0).rounds() == 1);
    CHECK(recursive_doubling{}.reduce_scatter(19, 0).rounds() == 6);
    CHECK(recursive_doubling{}.all_gather(19, 0).rounds() == 6);
}

TEST_CASE("recursive_doubling: a rank outside the group is refused") {
    CHECK_THROWS_AS(recursive_doubling{}.all_reduce(3, 3), contract_violation);
    CHECK_THROWS_AS(recursive_doubling{}.all_reduce(0, 0), contract_violation);
}
