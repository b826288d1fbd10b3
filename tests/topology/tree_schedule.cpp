#include <rill/topology/tree_schedule.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using namespace rill;
using namespace rill::topology;

TEST_CASE("tree_schedule: parents and children name each other as peers") {
    for (int size : {1, 2, 7, 20})
        for (int root : {0, size / 2, size - 1})
            for (int rank = 0; rank < size; ++rank) {
                const tree_schedule s(operation::reduce, 2, size, rank, root);
                CHECK((s.parent() == no_rank) == (rank == root));
                CHECK(s.level() <= s.depth());
                for (int i = 0; i < s.children(); ++i) {
                    const tree_schedule child(operation::reduce, 2, size, s.child(i), root);
                    CHECK(child.parent() == rank);
                    CHECK(child.level() == s.level() + 1);
                }
            }
}

TEST_CASE("tree_schedule: all children of a node arrive in one round") {
    const tree_schedule s(operation::all_reduce, 3, 14, 0);
    CHECK(s.receives(s.depth() - 1) == 3);
    for (int k = 0; k + 1 < s.depth(); ++k) CHECK(s.receives(k) == 0);
}

TEST_CASE("tree_schedule: an all-gather sends a child the parts outside its subtree") {
    const tree_schedule s(operation::all_gather, 2, 7, 0);
    CHECK(s.sends(2) == 3);
    CHECK(s.send(2, 0) == transfer{1, {0, 1}});
    CHECK(s.send(2, 1) == transfer{1, {4, 7}});
    CHECK(s.send(2, 2) == transfer{4, {0, 4}});
}
