#include "counts.hpp"

#include <rill/topology/ring.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

TEST_CASE("ring: the folds of each part end, and its copies start, at the rank with its number") {
    for (int size : {2, 3, 8, 13})
        for (int rank = 0; rank < size; ++rank) {
            const ring_schedule s = ring{}.all_reduce(size, rank);
            CHECK(s.receive(size - 2, 0).parts == part_range{rank, rank + 1});
            CHECK(s.send(size - 1, 0).parts == part_range{rank, rank + 1});
        }
}

TEST_CASE("ring: 2(P-1) rounds, and 2(P-1) of P parts sent") {
    for (int size : {1, 2, 3, 8, 13})
        for (int rank = 0; rank < size; ++rank) {
            CHECK(ring{}.all_reduce(size, rank).rounds() == 2 * (size - 1));
            CHECK(parts_sent(ring{}.all_reduce(size, rank)) == 2 * (size - 1));
            CHECK(parts_sent(ring{}.reduce_scatter(size, rank)) == size - 1);
            CHECK(parts_sent(ring{}.all_gather(size, rank)) == size - 1);
        }
}

TEST_CASE("ring: a rank outside the group is refused") {
    CHECK_THROWS_AS(ring{}.all_reduce(3, 3), contract_violation);
    CHECK_THROWS_AS(ring{}.all_reduce(3, -1), contract_violation);
}
