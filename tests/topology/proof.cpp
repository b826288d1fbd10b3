#include "../support/sanitized.hpp"
#include "expressions.hpp"
#include "table.hpp"

#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace {

using namespace rill;
using namespace rill::topology;
using namespace topology_test;

template <class Visit>
void for_each_shipped(Visit&& visit) {
    visit(ring{});
    visit(split_allgather{});
    visit(recursive_doubling{});
    visit(halving_doubling{});
    visit(tree{.arity = 1});
    visit(tree{});
    visit(tree{.arity = 3});
    visit(tree{.arity = 7});
    visit(star{});
}

void check(const char* name, operation what, int size, int root, const verdict& v) {
    if (v) return;
    FAIL_CHECK(std::string(name) << ", " << std::string(rill::name(what)) << ", P = " << size << ", root " << root
                                 << ", round " << v.round << ", rank " << v.rank << ": " << std::string(v.what));
}

template <Topology T>
void prove(const T& topology, int size) {
    check(T::name, operation::all_reduce, size, 0, verify_all_reduce(topology, size));
    check(T::name, operation::reduce_scatter, size, 0, verify_reduce_scatter(topology, size));
    check(T::name, operation::all_gather, size, 0, verify_all_gather(topology, size));
    if constexpr (TreeTopology<T>)
        for (int root = 0; root < size; root += size <= 20 ? 1 : size / 10) {
            check(T::name, operation::reduce, size, root, verify_reduce(topology, size, root));
            check(T::name, operation::broadcast, size, root, verify_broadcast(topology, size, root));
        }
}

/// For two ranks and one part: both send to the other and fold.
table exchange() {
    return written_down([](int rank) { return recursive_doubling{}.all_reduce(2, rank); }, 2);
}
table shipped(auto topology, int size) {
    return written_down([=](int rank) { return topology.all_reduce(size, rank); }, size);
}

std::string defect(const table& t, operation what = operation::all_reduce, promises promised = {}, int root = 0) {
    return verify({what, t.size(), root, promised}, views(t)).what;
}

table silent(int size, int parts, int rounds, action kind) {
    table t{parts, {}};
    t.ranks.assign(static_cast<std::size_t>(size),
                   std::vector<table_round>(static_cast<std::size_t>(rounds), table_round{kind, {}, {}}));
    return t;
}
void add(table& t, int round, int from, int to, part_range parts) {
    t.at(from, round).sends.push_back({to, parts});
    t.at(to, round).receives.push_back({from, parts});
}

}  // namespace

TEST_CASE("all shipped schedules are right for 1 … 64 ranks and some up to 300") {
    for_each_shipped([](const auto& topology) {
#ifdef RILL_TEST_SANITIZED  // each size takes the same memory paths
        for (int size : {1, 2, 3, 5, 8, 13, 33, 64, 100}) prove(topology, size);
#else
        for (int size = 1; size <= 64; ++size) prove(topology, size);
        for (int size : {65, 100, 127, 128, 129, 191, 255, 256, 257, 300}) prove(topology, size);
#endif
    });
}

TEST_CASE("preserves_rank_order is true exactly where folded expressions are in ascending order") {
    for_each_shipped([](const auto& topology) {
        bool all_reduce_ascends = true, reduce_scatter_ascends = true;
#ifdef RILL_TEST_SANITIZED
        const int most = 17;
#else
        const int most = 33;
#endif
        for (int size = 1; size <= most; ++size) {
            const table whole = shipped(topology, size);
            const auto all = run_on_expressions(whole, all_contribute(size, whole.parts));
            const table scattered = written_down([&](int rank) { return topology.reduce_scatter(size, rank); }, size);
            const auto one = run_on_expressions(scattered, all_contribute(size, size));
            for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank) {
                for (const auto& value : all.values[rank])
                    all_reduce_ascends = all_reduce_ascends && order_of(value) == ascending(size);

                reduce_scatter_ascends = reduce_scatter_ascends && order_of(one.values[rank][rank]) == ascending(size);
            }
            // all ranks have the same bits
            CHECK(all.values == std::vector(static_cast<std::size_t>(size), all.values[0]));
        }
        CHECK(all_reduce_ascends == topology.preserves_rank_order);
        CHECK(reduce_scatter_ascends == topology.preserves_rank_order);
    });
}

TEST_CASE("a false promise is refused") {
    CHECK(defect(shipped(ring{}, 3), operation::all_reduce, {.rank_order = true}) ==
          "a fold does not keep the order of ranks");
    CHECK(defect(shipped(halving_doubling{}, 4), operation::all_reduce, {.rank_order = true}) ==
          "a fold does not keep the order of ranks");
    CHECK(defect(shipped(recursive_doubling{}, 4), operation::all_reduce, {.copy_phase = true}) ==
          "two ranks finish a part: there is no copy phase");

    CHECK(defect(shipped(split_allgather{}, 3), operation::all_reduce, {.owners = true}) == "ok");
    CHECK(defect(shipped(ring{}, 3), operation::all_reduce, {.owners = true}) ==
          "a part is not folded by its owner, from all ranks at once");
    CHECK(defect(shipped(star{}, 3), operation::all_reduce, {.owners = true}) ==
          "not all ranks own equally many parts");

    table early = silent(3, 1, 3, action::copy);
    for (int rank : {0, 1, 2}) early.at(rank, 0).kind = action::fold;
    add(early, 0, 1, 0, {0, 1});
    add(early, 1, 0, 1, {0, 1});
    CHECK(defect(early, operation::all_reduce, {.copy_phase = true}) == "a part is copied before it is finished");
}

TEST_CASE("an impossible group is refused") {
    CHECK(std::string(verify_all_reduce(ring{}, 0).what) == "a group has at least one rank");
    CHECK(std::string(verify_reduce(star{}, 1, 0).what) == "ok");
    CHECK(defect(exchange(), operation::reduce, {}, 2) == "the root is outside the group");
}

TEST_CASE("schedules that do not fit together are refused") {
    CHECK(defect(exchange(), operation::reduce_scatter) == "there must be one part for each rank");
    table t = exchange();
    t.parts = 0;
    CHECK(defect(t) == "there must be at least one part");

    const auto uneven = [](int rank) { return ring{}.all_reduce(2 + rank, rank); };
    CHECK(std::string(verify({operation::all_reduce, 2}, uneven).what) == "the ranks disagree on the number of parts");
    t = exchange();
    t.ranks[1].emplace_back();
    CHECK(defect(t) == "the ranks disagree on the number of rounds");
    t = exchange();
    t.at(1, 0).kind = action::copy;
    CHECK(defect(t) == "one end of a message folds, the other copies");
}

TEST_CASE("an impossible transfer is refused") {
    table t = exchange();
    t.at(0, 0).sends[0].peer = 2;
    CHECK(defect(t) == "a peer is outside the group");
    t.at(0, 0).sends[0].peer = -1;
    CHECK(defect(t) == "a peer is outside the group");
    t.at(0, 0).sends[0].peer = 0;
    CHECK(defect(t) == "a rank sends to itself");
    t = exchange();
    t.at(0, 0).sends[0].parts = {0, 2};
    CHECK(defect(t) == "a range of parts is not inside [0, parts())");
    t.at(0, 0).sends[0].parts = {1, 1};
    CHECK(defect(t) == "a range of parts is not inside [0, parts())");
    t.at(0, 0).sends[0].parts = {};
    CHECK(defect(t) == "a transfer carries no parts, and the operation needs no notice");
}

TEST_CASE("sends and receives that do not match are refused") {
    table t = exchange();
    t.at(0, 0).sends.clear();
    CHECK(defect(t) == "a receive has no send in its round");
    t = exchange();
    t.at(0, 0).receives.clear();
    CHECK(defect(t) == "a send to this rank has no receive in its round");
    t = shipped(split_allgather{}, 3);
    t.at(1, 0).receives.erase(t.at(1, 0).receives.begin());
    CHECK(defect(t) == "a send to this rank has no receive in its round");
    t = shipped(split_allgather{}, 3);
    t.at(1, 1).receives[1].parts = {0, 1};
    CHECK(defect(t) == "a receive expects other parts than are sent");
    t = shipped(star{}, 3);
    std::swap(t.at(0, 0).receives[0], t.at(0, 0).receives[1]);
    CHECK(defect(t) == "a send to this rank has no receive in its round");
    t = shipped(star{}, 3);
    t.at(0, 0).receives.push_back({1, {0, 1}});
    CHECK(defect(t) == "receives are not in ascending order of peers");
}

TEST_CASE("a fold that makes the sum wrong is refused") {
    table t = silent(2, 1, 2, action::fold);
    add(t, 0, 1, 0, {0, 1});
    add(t, 1, 1, 0, {0, 1});
    CHECK(defect(t) == "a contribution is folded twice");

    t = silent(3, 2, 1, action::fold);
    add(t, 0, 1, 0, {0, 2});
    add(t, 0, 2, 0, {1, 2});
    CHECK(defect(t) == "parts received in one round overlap");

    t = silent(3, 1, 3, action::copy);
    for (int rank : {0, 1, 2}) t.at(rank, 0).kind = t.at(rank, 2).kind = action::fold;
    add(t, 0, 1, 0, {0, 1});
    add(t, 1, 0, 1, {0, 1});
    add(t, 2, 2, 1, {0, 1});
    CHECK(defect(t) == "a part is folded after it was copied");

    t = exchange();
    CHECK(defect(t, operation::broadcast) == "the operation folds nothing");
    t = silent(2, 1, 1, action::fold);
    add(t, 0, 1, 0, {0, 1});
    CHECK(defect(t) == "a contribution is missing");
}

TEST_CASE("a copy that brings nothing is refused") {
    table t = exchange();
    for (auto& rounds : t.ranks) rounds.push_back({action::copy, {}, {}});
    add(t, 1, 0, 1, {0, 1});
    CHECK(defect(t) == "a copy brings nothing new, or less than it replaces");
    CHECK(defect(t, operation::reduce) == "a reduction copies no parts");

    t = silent(3, 3, 2, action::copy);
    add(t, 0, 1, 0, {2, 3});
    CHECK(defect(t, operation::all_gather) == "a copy brings nothing new, or less than it replaces");
}

TEST_CASE("a part that is received but not needed is refused") {
    table t = written_down([](int rank) { return ring{}.reduce_scatter(2, rank); }, 2);
    for (auto& rounds : t.ranks) rounds.push_back({action::copy, {}, {}});
    CHECK(defect(t, operation::reduce_scatter) == "ok");
    add(t, 1, 0, 1, {0, 1});
    CHECK(defect(t, operation::reduce_scatter) == "a rank receives a part that it neither needs nor sends on");
}

TEST_CASE("all ranks must learn the outcome of a rooted operation") {
    const auto reduce = [](int rank) { return star{}.reduce(3, rank, 1); };
    table t = written_down(reduce, 3);
    CHECK(defect(t, operation::reduce, {}, 1) == "ok");
    add(t, 1, 1, 2, {});
    CHECK(defect(t, operation::reduce, {}, 1) == "a notice tells nothing new");
    t = written_down(reduce, 3);
    t.at(1, 1).sends.pop_back();
    t.at(2, 1).receives.clear();
    CHECK(defect(t, operation::reduce, {}, 1) == "a rank is not told that the root has finished");

    t = written_down([](int rank) { return star{}.broadcast(3, rank, 1); }, 3);
    t.at(2, 0).sends.clear();
    t.at(1, 0).receives.pop_back();
    CHECK(defect(t, operation::broadcast, {}, 1) == "a rank does not learn that all ranks have entered");
}

TEST_CASE("a verdict names its place") {
    table t = shipped(ring{}, 4);
    t.at(2, 3).receives.clear();
    const verdict v = verify({operation::all_reduce, 4}, views(t));
    CHECK(!v);
    CHECK(v.round == 3);
    CHECK(v.rank == 2);
}

TEST_CASE("require_all_reduce: proves each size; a defect becomes a text in pieces") {
    static_assert(require_all_reduce<ring{}, 1, 2, 5>());
    static_assert(require_reduce_scatter<ring{}, 2>() && require_all_gather<ring{}, 2>());
    constexpr topology::detail::parted_text text = topology::detail::describe(
        {rill::operation::all_reduce, 12}, {false, 0, 3, "a receive has no send in its round"});
    CHECK(std::string(text.text) ==
          "rill::topology: all_reduce of 12 ranks, round 0, rank 3: a receive has no send in its round; mend the "
          "schedule");
    CHECK(text.count == 4);
    for (std::size_t piece = 0; piece < text.count; ++piece)
        CHECK(text.size(piece) <= topology::detail::parted_text::most);
    CHECK(text.begin[text.count] == std::string(text.text).size());
}
