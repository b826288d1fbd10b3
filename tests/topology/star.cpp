#include "counts.hpp"

#include <rill/topology/star.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

TEST_CASE("star: all ranks talk to the root alone, in two rounds") {
    for (int size : {2, 3, 8, 13})
        for (int root = 0; root < size; ++root)
            for (int rank = 0; rank < size; ++rank) {
                const tree_schedule s = star{}.reduce(size, rank, root);
                CHECK(s.rounds() == 2);
                CHECK(s.receives(0) == (rank == root ? size - 1 : 0));
                if (rank != root) CHECK(s.send(0, 0) == transfer{root, {0, 1}});
                if (rank != root) CHECK(s.receive(1, 0) == transfer{root, {}});
            }
}

TEST_CASE("star: bytes sent by the root") {
    for (int size : {1, 2, 3, 8, 13}) {
        CHECK(parts_sent(star{}.all_reduce(size, 0)) == size - 1);
        CHECK(parts_sent(star{}.reduce_scatter(size, 0)) == size - 1);
        CHECK(parts_sent(star{}.all_gather(size, 0)) == (size - 1) * (size - 1));
    }
}
