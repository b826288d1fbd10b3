#include <rill/topology/regular_tree.hpp>

#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/testing/straggler_laws.hpp>

#include <doctest/doctest.h>

using rill::no_rank;
using rill::topology::regular_tree;

namespace {

/// Whether parents and children agree on each other, from the master down to the last layer.
constexpr bool is_consistent(regular_tree tree) {
    const int size = tree.size();
    int edges = 0;
    for (int rank = 0; rank < size; ++rank) {
        if (tree.layer(rank) + tree.height(size, rank) != tree.depth) return false;
        if ((tree.height(size, rank) == 0) != (tree.children(size, rank) == 0)) return false;
        for (int i = 0; i < tree.children(size, rank); ++i, ++edges) {
            const int child = tree.child(size, rank, i);
            if (child != edges + 1 || tree.parent(size, child) != rank) return false;
            if (tree.layer(child) != tree.layer(rank) + 1) return false;
        }
    }
    return edges == tree.workers() && tree.parent(size, 0) == no_rank;
}

static_assert(is_consistent({.width = 3, .depth = 2}));
static_assert(is_consistent({.width = 1, .depth = 5}));
static_assert(is_consistent({.width = 4, .depth = 3}));
static_assert(is_consistent({.width = 7, .depth = 1}));

}  // namespace

TEST_CASE("regular_tree: sizes of the paper") {
    CHECK(regular_tree{.width = 12, .depth = 2}.workers() == 156);
    CHECK(regular_tree{.width = 4, .depth = 3}.workers() == 84);
    CHECK(regular_tree{.width = 3, .depth = 2}.workers() == 12);
    CHECK(regular_tree{.width = 12, .depth = 2}.first_of(2) == 13);
    CHECK(is_consistent({.width = 12, .depth = 2}));
    CHECK(is_consistent({.width = 2, .depth = 9}));
}

TEST_CASE("regular_tree: the laws of aggregation trees") {
    for (const regular_tree tree : {regular_tree{.width = 3, .depth = 3}, regular_tree{.width = 1, .depth = 4},
                                    regular_tree{.width = 6, .depth = 1}})
        rill::testing::for_each_tree_law(tree, tree.size(), [](const char*, const rill::testing::law_outcome& outcome) {
            INFO(outcome.what);
            CHECK(outcome.held);
        });
}

TEST_CASE("regular_tree: invalid options, sizes and ranks are refused") {
    const regular_tree tree{.width = 3, .depth = 2};
    CHECK_THROWS_WITH_AS(tree.parent(12, 3), doctest::Contains("1 + width"), rill::contract_violation);
    CHECK_THROWS_AS(tree.children(13, 13), rill::contract_violation);
    CHECK_THROWS_AS(tree.child(13, 0, 3), rill::contract_violation);
    CHECK_THROWS_AS(tree.child(13, 4, 0), rill::contract_violation);
    CHECK_THROWS_AS((regular_tree{.width = 0, .depth = 2}.size()), rill::contract_violation);
    CHECK_THROWS_AS((regular_tree{.width = 3, .depth = 0}.size()), rill::contract_violation);
    CHECK_THROWS_WITH_AS((regular_tree{.width = 1000, .depth = 4}.size()), doctest::Contains("2^30"),
                         rill::contract_violation);
}

TEST_CASE("regular_tree: ranks compare its options") {
    CHECK(regular_tree{.width = 3, .depth = 2} == regular_tree{.width = 3, .depth = 2});
    CHECK(rill::fingerprint(regular_tree{.width = 3, .depth = 2}) !=
          rill::fingerprint(regular_tree{.width = 2, .depth = 3}));
}
