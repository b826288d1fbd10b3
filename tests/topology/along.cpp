#include <rill/topology/along.hpp>

#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <concepts>

using namespace rill;
using namespace rill::topology;

namespace along_test {

/// A user's tree: the parent of rank r is r with its lowest bit cleared. Nodes have up to log2 P children, and the
/// ranks of a subtree are consecutive.
struct binomial {
    static constexpr const char* name = "binomial";
    static constexpr rank_t parent(int, rank_t rank) { return rank == 0 ? no_rank : (rank & (rank - 1)); }
    static constexpr int children(int size, rank_t rank) {
        int n = 0;
        for (int bit = 1; rank + bit < size && (rank == 0 || bit < (rank & -rank)); bit *= 2) ++n;
        return n;
    }
    static constexpr rank_t child(int, rank_t rank, int i) { return rank + (1 << i); }
    static constexpr int height(int size, rank_t rank) {
        int most = 0;
        for (int i = 0; i < children(size, rank); ++i) {
            const int below = 1 + height(size, child(size, rank, i));
            most = below > most ? below : most;
        }
        return most;
    }
    friend bool operator==(binomial, binomial) = default;
};

/// A user's tree whose subtrees are not consecutive: odd ranks are below 1, even ranks below 0.
struct parity {
    static constexpr const char* name = "parity";
    static constexpr rank_t parent(int, rank_t rank) { return rank == 0 ? no_rank : rank == 1 ? 0 : rank % 2; }
    static constexpr int children(int size, rank_t rank) {
        if (rank == 0) return (size > 1) + (size - 1) / 2;
        return rank == 1 ? size / 2 - 1 : 0;
    }
    static constexpr rank_t child(int, rank_t rank, int i) {
        if (rank == 0) return i == 0 ? 1 : 2 * i;
        return 3 + 2 * i;
    }
    static constexpr int height(int size, rank_t rank) {
        if (rank == 0) return size > 3 ? 2 : size > 1 ? 1 : 0;
        return rank == 1 && size > 3 ? 1 : 0;
    }
    friend bool operator==(parity, parity) = default;
};

static_assert(TreeTopology<binomial> && !Topology<binomial>);
static_assert(Topology<along<binomial>> && TreeTopology<along<binomial>>);
static_assert(std::same_as<with_collectives<regular_tree>::type, along<regular_tree>>);
static_assert(std::same_as<with_collectives<tree>::type, tree>);
static_assert(std::same_as<with_collectives<ring>::type, ring>);
static_assert(std::same_as<with_collectives<int>::type, int>);

/// The first defect of any collective; of rooted ones at every root.
template <class Tree>
constexpr verdict verify_all(const along<Tree>& topology, int size) {
    for (const verdict found :
         {verify_all_reduce(topology, size), verify_reduce_scatter(topology, size), verify_all_gather(topology, size)})
        if (!found) return found;
    for (rank_t root = 0; root < size; ++root)
        for (const verdict found : {verify_reduce(topology, size, root), verify_broadcast(topology, size, root)})
            if (!found) return found;
    return {};
}

template <class Tree>
void check(const along<Tree>& topology, int size) {
    const verdict found = verify_all(topology, size);
    CAPTURE(size);
    CAPTURE(found.round);
    CAPTURE(found.rank);
    INFO(found.what);
    CHECK(found.ok);
}

static_assert(verify_all_reduce(along{regular_tree{.width = 2, .depth = 1}}, 3));
static_assert(verify_all(along{binomial{}}, 4));
static_assert(verify_all(along{parity{}}, 4));

}  // namespace along_test

using namespace along_test;

TEST_CASE("along: every collective follows every tree, from and to every root") {
    for (int size = 1; size <= 17; ++size) {
        check(along{binomial{}}, size);
        check(along{parity{}}, size);
        check(along{star{}}, size);
        check(along{tree{.arity = 3}}, size);
    }
    for (const regular_tree shape : {regular_tree{.width = 1, .depth = 4}, regular_tree{.width = 3, .depth = 2},
                                     regular_tree{.width = 2, .depth = 4}, regular_tree{.width = 6, .depth = 1}})
        check(along{shape}, shape.size());
}

TEST_CASE("along: 2 rounds per level, and one message where the ranks of a subtree are consecutive") {
    const regular_tree shape{.width = 3, .depth = 2};
    CHECK(along{shape}.all_reduce(13, 5).rounds() == 4);
    // Below rank 1 are 1, 4, 5 and 6: two runs of ranks. The other ranks are 0, 2 … 3 and 7 … 12: three runs.
    CHECK(along{shape}.all_gather(13, 1).sends(1) == 2);
    CHECK(along{shape}.all_gather(13, 1).receives(2) == 3);
    CHECK(along{shape}.reduce_scatter(13, 1).receives(2) == 2);
    CHECK(along{binomial{}}.all_gather(8, 4).sends(2) == 1);
}

TEST_CASE("along: bad arguments are refused") {
    CHECK_THROWS_AS(along{star{}}.all_reduce(3, 3), contract_violation);
    CHECK_THROWS_AS(along{star{}}.reduce(3, 0, 3), contract_violation);
    CHECK_THROWS_WITH_AS((along{regular_tree{.width = 3, .depth = 2}}.all_reduce(12, 0)),
                         doctest::Contains("1 + width"), contract_violation);
}

TEST_CASE("along: its options are those of its tree") {
    CHECK(fingerprint(along{tree{.arity = 2}}) != fingerprint(along{tree{.arity = 3}}));
    CHECK(along{regular_tree{.width = 2, .depth = 3}} == along{regular_tree{.width = 2, .depth = 3}});
}
