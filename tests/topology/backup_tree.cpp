#include <rill/topology/backup_tree.hpp>

#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/time.hpp>
#include <rill/testing/straggler_laws.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

using rill::no_rank;
using rill::rank_t;
using rill::topology::backup_tree;

namespace {

/// Brothers share the parent, and uncles are the parent's brothers; each of them is listed once, in ascending order.
constexpr bool relations_hold(backup_tree tree, int size) {
    for (rank_t rank = 0; rank < size; ++rank) {
        const rank_t above = tree.parent(size, rank);
        if ((above == no_rank) != (rank == 0)) return false;
        for (int i = 0; i < tree.brothers(size, rank); ++i) {
            const rank_t brother = tree.brother(size, rank, i);
            if (brother == rank || tree.parent(size, brother) != above) return false;
            if (i > 0 && tree.brother(size, rank, i - 1) >= brother) return false;
        }
        for (int i = 0; i < tree.uncles(size, rank); ++i) {
            const rank_t uncle = tree.uncle(size, rank, i);
            if (uncle == above || tree.parent(size, uncle) != tree.parent(size, above)) return false;
            if (i > 0 && tree.uncle(size, rank, i - 1) >= uncle) return false;
        }
        if (above != no_rank && tree.brothers(size, rank) + 1 != tree.children(size, above)) return false;
    }
    return true;
}

/// The detours of each pair are all other ranks, each once, alike in both directions; between parent and child those of
/// which both links are tree or backup links come first.
constexpr bool detours_hold(backup_tree tree, int size) {
    for (rank_t one = 0; one < size; ++one)
        for (rank_t other = 0; other < one; ++other) {
            const bool is_edge = tree.is_tree_link(size, one, other);
            unsigned long long seen = 0;
            bool all_near = true;
            for (int i = 0; i < size - 2; ++i) {
                const rank_t by = tree.detour(size, one, other, i);
                if (by == one || by == other || by < 0 || by >= size) return false;
                if (by != tree.detour(size, other, one, i) || (seen >> by & 1U) != 0) return false;
                seen |= 1ULL << by;
                const auto linked = [&](rank_t end) {
                    return tree.is_tree_link(size, end, by) || tree.is_backup_link(size, end, by);
                };
                const bool is_near = is_edge && linked(one) && linked(other);
                const rank_t below = tree.parent(size, one) == other ? one : other;
                const bool backs_up = i < tree.brothers(size, below) + tree.uncles(size, below);
                if (is_edge && backs_up && !(is_near && all_near)) return false;
                all_near = is_near;
            }
        }
    return true;
}

static_assert(relations_hold({.arity = 2}, 7) && relations_hold({.arity = 3}, 8) && detours_hold({.arity = 2}, 5));
static_assert(rill::topology::computes_all_reduce(backup_tree{}, 7));

/// Whether each pair of ranks still reaches each other over one link or two, without these links.
bool reach_each_other(int size, const std::set<std::pair<rank_t, rank_t>>& lost, const backup_tree& tree) {
    const auto works = [&](rank_t a, rank_t b) { return !lost.contains(std::minmax(a, b)); };
    for (rank_t one = 0; one < size; ++one)
        for (rank_t other = 0; other < one; ++other) {
            bool reached = works(one, other);
            for (int i = 0; !reached && i < size - 2; ++i) {
                const rank_t by = tree.detour(size, one, other, i);
                reached = works(one, by) && works(by, other);
            }
            if (!reached) return false;
        }
    return true;
}

}  // namespace

TEST_CASE("backup_tree: brothers, uncles and detours, for many sizes and degrees") {
    for (const int arity : {1, 2, 3, 4, 7})
        for (int size = 1; size <= 33; ++size) {
            CAPTURE(arity);
            CAPTURE(size);
            CHECK(relations_hold({.arity = arity}, size));
            CHECK(detours_hold({.arity = arity}, size));
        }
}

TEST_CASE("backup_tree: parents, children and folds are those of the plain tree") {
    for (const int arity : {1, 2, 3, 7})
        for (const int size : {1, 2, 3, 7, 8, 15, 31}) {
            rill::testing::for_each_tree_law(backup_tree{.arity = arity}, size,
                                             [](const char*, const rill::testing::law_outcome& outcome) {
                                                 INFO(outcome.what);
                                                 CHECK(outcome.held);
                                             });
            for (rank_t rank = 0; rank < size; ++rank) {
                const rill::topology::tree plain{arity};
                const backup_tree tree{arity};
                CHECK(tree.all_reduce(size, rank) == plain.all_reduce(size, rank));
                CHECK(tree.reduce_scatter(size, rank) == plain.reduce_scatter(size, rank));
                CHECK(tree.all_gather(size, rank) == plain.all_gather(size, rank));
                CHECK(tree.reduce(size, rank, size / 2) == plain.reduce(size, rank, size / 2));
                CHECK(tree.broadcast(size, rank, size / 2) == plain.broadcast(size, rank, size / 2));
            }
        }
}

TEST_CASE("backup_tree: seven ranks, as in Figure 7") {
    const backup_tree tree{};
    CHECK(tree.parent(7, 2) == 1);
    CHECK(tree.brother(7, 2, 0) == 3);
    CHECK(tree.uncle(7, 2, 0) == 4);
    CHECK(tree.detour(7, 2, 1, 0) == 3);
    CHECK(tree.detour(7, 2, 1, 1) == 4);
    CHECK(tree.detour(7, 1, 2, 2) == 0);
    CHECK(tree.detour(7, 0, 1, 0) == 4);
    CHECK(tree.uncles(7, 1) == 0);
    CHECK(tree.brothers(7, 0) == 0);
    CHECK(tree.is_backup_link(7, 2, 3));
    CHECK(tree.is_backup_link(7, 4, 3));
    CHECK(!tree.is_backup_link(7, 2, 1));
    CHECK(!tree.is_backup_link(7, 2, 5));
}

TEST_CASE("backup_tree: whatever P - 2 links are lost, two links lead from each rank to each other") {
    for (const int size : {3, 4, 5}) {
        std::vector<std::pair<rank_t, rank_t>> links;
        for (rank_t one = 0; one < size; ++one)
            for (rank_t other = one + 1; other < size; ++other) links.emplace_back(one, other);
        bool parts_once = false;
        for (unsigned set = 0; set < 1U << links.size(); ++set) {
            std::set<std::pair<rank_t, rank_t>> lost;
            for (std::size_t i = 0; i < links.size(); ++i)
                if ((set >> i & 1U) != 0) lost.insert(links[i]);
            const bool reach = reach_each_other(size, lost, backup_tree{});
            if (lost.size() + 2 <= static_cast<std::size_t>(size)) CHECK(reach);
            parts_once = parts_once || (lost.size() + 1 == static_cast<std::size_t>(size) && !reach);
        }
        CHECK(parts_once);
    }
}

TEST_CASE("backup_tree: ranks compare its options, and bad ones are refused") {
    using rill::detect;
    CHECK(backup_tree{2} == backup_tree{});
    CHECK(rill::fingerprint(backup_tree{2}) != rill::fingerprint(backup_tree{3}));
    CHECK(rill::fingerprint(backup_tree{2}) != rill::fingerprint(backup_tree{2, detect::fixed(rill::seconds(1))}));
    CHECK_THROWS_AS(backup_tree{0}.all_reduce(3, 0), rill::contract_violation);
    CHECK_THROWS_AS(backup_tree{}.brother(7, 2, 1), rill::contract_violation);
    CHECK_THROWS_AS(backup_tree{}.uncle(7, 1, 0), rill::contract_violation);
    CHECK_THROWS_AS(backup_tree{}.detour(7, 2, 1, 5), rill::contract_violation);
}
