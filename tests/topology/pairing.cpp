#include <rill/topology/pairing.hpp>

#include <doctest/doctest.h>

using namespace rill::topology;

TEST_CASE("pairing: members are a power of two, in the order of their ranks") {
    for (int size = 1; size <= 70; ++size) {
        const pairing p(size);
        CHECK(p.members() == 1 << p.levels());
        CHECK(p.members() <= size);
        CHECK(2 * p.members() > size);
        CHECK(p.leader(p.members()) == size);
        for (int rank = 0; rank < size; ++rank) {
            CHECK(p.leader(p.member(rank)) == (p.leads(rank) ? rank : rank - 1));
            CHECK(p.is_paired(rank) == (p.leader(p.member(rank) + 1) - p.leader(p.member(rank)) == 2));
        }
    }
}
