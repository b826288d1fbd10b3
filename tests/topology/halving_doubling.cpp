#include "counts.hpp"

#include <rill/topology/halving_doubling.hpp>

#include <doctest/doctest.h>

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

TEST_CASE("halving_doubling: member i owns part i after halving and before doubling") {
    for (int rank = 0; rank < 8; ++rank) {
        const auto s = halving_doubling{}.all_reduce(8, rank);
        CHECK(s.parts() == 8);
        CHECK(s.rounds() == 6);
        CHECK(parts_sent(s) == 2 * 7);
        CHECK(s.send(0, 0).peer == (rank ^ 4));
        CHECK(s.receive(2, 0).parts == part_range{rank, rank + 1});
        CHECK(s.send(3, 0) == transfer{rank ^ 1, {rank, rank + 1}});
    }
}

TEST_CASE("halving_doubling: any number of ranks makes a power of two of parts") {
    CHECK(halving_doubling{}.all_reduce(13, 0).parts() == 8);
    CHECK(halving_doubling{}.all_reduce(13, 0).rounds() == 8);
    CHECK(parts_sent(halving_doubling{}.all_reduce(13, 0)) == 2 * 7 + 8);
    CHECK(parts_sent(halving_doubling{}.all_reduce(13, 1)) == 8);
    CHECK(parts_sent(halving_doubling{}.all_reduce(13, 12)) == 2 * 7);
}

TEST_CASE("halving_doubling: bytes of reduce_scatter and all_gather") {
    for (int size = 1; size <= 40; ++size)
        for (int rank = 0; rank < size; ++rank) {
            CHECK(parts_sent(halving_doubling{}.reduce_scatter(size, rank)) <= size);
            const bool first_of_pair = pairing(size).is_paired(rank) && pairing(size).leads(rank);
            CHECK(3 * parts_sent(halving_doubling{}.all_gather(size, rank)) < (first_of_pair ? 7 : 4) * size);
        }
}
