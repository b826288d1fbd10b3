#include "counts.hpp"

#include <rill/topology/split_allgather.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

TEST_CASE("split_allgather: two rounds, 2(P-1) of P parts sent; no receiver is first for all senders") {
    for (int size : {2, 3, 8, 13})
        for (int rank = 0; rank < size; ++rank) {
            const split_schedule s = split_allgather{}.all_reduce(size, rank);
            CHECK(s.rounds() == 2);
            CHECK(parts_sent(s) == 2 * (size - 1));
            CHECK(s.send(0, 0).peer == (rank + 1) % size);
            CHECK(s.send(1, 0) == transfer{(rank + 1) % size, {rank, rank + 1}});
            CHECK(parts_sent(split_allgather{}.reduce_scatter(size, rank)) == size - 1);
            CHECK(parts_sent(split_allgather{}.all_gather(size, rank)) == size - 1);
        }
    CHECK(split_allgather{}.all_reduce(1, 0).rounds() == 0);
}

TEST_CASE("split_allgather: a rank outside the group is refused") {
    CHECK_THROWS_AS(split_allgather{}.all_gather(3, 3), contract_violation);
}
