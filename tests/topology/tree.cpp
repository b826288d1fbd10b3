#include "counts.hpp"

#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

TEST_CASE("tree: 2 rounds per level") {
    CHECK(tree{}.all_reduce(1, 0).rounds() == 0);
    CHECK(tree{}.all_reduce(7, 3).rounds() == 4);
    CHECK(tree{}.all_reduce(8, 3).rounds() == 6);
    CHECK(tree{.arity = 1}.all_reduce(8, 3).rounds() == 14);
    CHECK(tree{.arity = 7}.all_reduce(8, 3).rounds() == 2);
}

TEST_CASE("tree: bytes sent stay within the documented bound") {
    for (int arity : {1, 2, 3, 7})
        for (int size : {2, 3, 8, 13, 40})
            for (int rank = 0; rank < size; ++rank) {
                const tree t{arity};
                CHECK(parts_sent(t.all_reduce(size, rank)) <= 1 + arity);
                CHECK(parts_sent(t.reduce(size, rank, 0)) == (rank == 0 ? 0 : 1));
                CHECK(parts_sent(t.broadcast(size, rank, 0)) <= arity);
                CHECK(parts_sent(t.reduce_scatter(size, rank)) < 2 * size);
                CHECK(parts_sent(t.all_gather(size, rank)) <= arity * size + 1);
            }
}

TEST_CASE("tree: options can be visited") {
    std::string seen;
    tree{.arity = 3}.visit_options([&](const char* name, int value) { seen += name + std::to_string(value); });
    CHECK(seen == "arity3");
    CHECK(tree{} == tree{.arity = 2});
    CHECK(tree{} != tree{.arity = 3});
}

TEST_CASE("tree: bad arguments are refused") {
    CHECK_THROWS_AS(tree{.arity = 0}.all_reduce(3, 0), contract_violation);
    CHECK_THROWS_AS(tree{}.all_reduce(3, 3), contract_violation);
    CHECK_THROWS_AS(tree{}.reduce(3, 0, 3), contract_violation);
}
