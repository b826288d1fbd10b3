// The proof of mixings refuses every change of one edge, and names it.
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/topology/verify_mixing.hpp>

#include "../support/greedy_matcher.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mixing_proof_cases {

using namespace rill;

/// A mixing with rows that a test has changed.
template <bool doubly, bool symmetric, bool keeps>
struct table {
    static constexpr const char* name = "table";
    static constexpr bool is_doubly_stochastic = doubly;
    static constexpr bool is_symmetric = symmetric;
    static constexpr bool keeps_neighbours = keeps;

    std::vector<std::vector<mixing_row>> rows{};  ///< [round][rank]

    struct bound {
        const table* of;
        void fill(std::uint64_t round, rank_t rank, mixing_row& row) const {
            row = of->rows[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank)];
        }
    };
    bound bind(int, random_key) const { return {this}; }
    friend bool operator==(const table&, const table&) = default;
};

template <class M>
using table_of = table<M::is_doubly_stochastic, M::is_symmetric, M::keeps_neighbours>;

constexpr std::uint64_t rounds = 3;

template <class M>
table_of<M> written(const M& mixing, int size) {
    table_of<M> made;
    auto bound = mixing.bind(size, random_key{5});
    for (std::uint64_t round = 0; round < rounds; ++round) {
        made.rows.emplace_back(static_cast<std::size_t>(size));
        for (rank_t rank = 0; rank < size; ++rank)
            bound.fill(round, rank, made.rows.back()[static_cast<std::size_t>(rank)]);
    }
    return made;
}

template <class Table>
topology::mixing_verdict judged(const Table& changed) {
    return topology::verify_mixing(changed, static_cast<int>(changed.rows[0].size()), {.count = rounds});
}

/// Each change of one end of one edge; both ends changed alike are another mixing, of which a sum or a flag is wrong.
template <class M>
int refused_changes(const M& mixing, int size) {
    const auto shipped = written(mixing, size);
    REQUIRE(judged(shipped).ok);
    int changes = 0;
    const auto refuse = [&](const auto& changed, std::uint64_t round) {
        const topology::mixing_verdict found = judged(changed);
        CHECK(!found.ok);
        CHECK(found.round == round);
        CHECK(found.rank != no_rank);
        CHECK(std::string(found.what) != "ok");
        ++changes;
    };
    for (std::uint64_t round = 0; round < rounds; ++round)
        for (std::size_t rank = 0; rank < static_cast<std::size_t>(size); ++rank) {
            const auto change = [&](auto mutate) {
                auto changed = shipped;
                if (mutate(changed.rows[static_cast<std::size_t>(round)][rank])) refuse(changed, round);
            };
            const std::size_t senders = shipped.rows[static_cast<std::size_t>(round)][rank].senders.size();
            const std::size_t receivers = shipped.rows[static_cast<std::size_t>(round)][rank].receivers.size();
            for (std::size_t i = 0; i < senders; ++i) {
                const auto at = static_cast<std::ptrdiff_t>(i);
                change([&](mixing_row& row) { return row.senders.erase(row.senders.begin() + at), true; });
                change([&](mixing_row& row) {
                    return row.senders.insert(row.senders.begin() + at, row.senders[i]), true;
                });
                for (rank_t other = -1; other <= size; ++other)
                    change([&](mixing_row& row) { return std::exchange(row.senders[i].peer, other) != other; });
                for (const double weight : {0.0, -0.5, 0.6, 1.0, std::nan(""), std::numeric_limits<double>::infinity()})
                    change([&](mixing_row& row) { return row.senders[i].weight = weight, true; });
            }
            for (std::size_t i = 0; i < receivers; ++i) {
                const auto at = static_cast<std::ptrdiff_t>(i);
                change([&](mixing_row& row) { return row.receivers.erase(row.receivers.begin() + at), true; });
                change([&](mixing_row& row) {
                    return row.receivers.insert(row.receivers.begin() + at, row.receivers[i]), true;
                });
                for (rank_t other = -1; other <= size; ++other)
                    change([&](mixing_row& row) { return std::exchange(row.receivers[i], other) != other; });
            }
            for (const double weight : {-0.5, 0.75, 2.0, std::nan("")})
                change([&](mixing_row& row) { return std::exchange(row.own_weight, weight) != weight; });
        }
    return changes;
}

TEST_CASE("verify_mixing: every change of one edge is refused, in its round") {
    for (const int size : {2, 3, 5, 8}) {
        CAPTURE(size);
        CHECK(refused_changes(topology::ring_neighbours{}, size) > 0);
        CHECK(refused_changes(topology::exponential{}, size) > 0);
        CHECK(refused_changes(topology::rotating{}, size) > 0);
        CHECK(refused_changes(topology::random_matching{}, size) > 0);
    }
    CHECK(refused_changes(topology::metropolis{{{0, 1}, {1, 2}, {1, 3}}}, 4) > 0);
    CHECK(refused_changes(topology::directed{{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}}}, 4) > 0);
    const topology::bandwidth_matching fast{.links = std::vector<double>(25, 1.0),
                                            .matcher = support::greedy_matcher{}};
    CHECK(refused_changes(fast, 5) > 0);
}

TEST_CASE("verify_mixing: a changed edge is refused with 300 ranks") {
    auto changed = written(topology::random_matching{}, 300);
    CHECK(judged(changed).ok);
    changed.rows[2][299].senders[0].weight += 1e-9;
    const auto found = judged(changed);
    CHECK(!found.ok);
    CHECK(found.round == 2);
    CHECK(found.rank == 299);
}

TEST_CASE("verify_mixing: names defect, round and ranks") {
    auto changed = written(topology::exponential{}, 8);
    changed.rows[1][3].senders.clear();
    auto found = judged(changed);
    CHECK(found.round == 1);
    CHECK(found.rank == 1);
    CHECK(found.peer == 3);
    CHECK(std::string(found.what) == "it sends a model that nobody awaits");

    changed = written(topology::exponential{}, 8);
    changed.rows[2][7].receivers.clear();
    found = judged(changed);
    CHECK(found.rank == 3);
    CHECK(found.peer == 7);
    CHECK(std::string(found.what) == "it awaits a model that its sender does not send");
}

TEST_CASE("verify_mixing: false flags are refused") {
    const auto hops = written(topology::exponential{}, 8);
    CHECK(!judged(table<true, true, false>{hops.rows}).ok);
    CHECK(std::string(judged(table<true, false, true>{hops.rows}).what).find("keeps_neighbours") != std::string::npos);
    // Rank 0 gives a third to each of two, who keep all of their own: columns sum to 1, rows do not.
    table<true, false, true> fan;
    fan.rows.assign(
        3, {{.own_weight = 1.0 / 3, .receivers = {1, 2}}, {.senders = {{0, 1.0 / 3}}}, {.senders = {{0, 1.0 / 3}}}});
    CHECK(std::string(judged(fan).what) == "the weights of what it takes do not sum to 1");
    CHECK(judged(table<false, false, true>{fan.rows}).ok);
}

TEST_CASE("verify_mixing: a window that does not join all ranks is named by its first round") {
    // 0 - 1 and 2 - 3 in rounds 0 to 2, then 1 - 2 too: only windows from there on join all.
    table<true, true, false> late;
    const auto pair = [](rank_t peer) { return mixing_row{0.5, {{peer, 0.5}}, {peer}}; };
    for (int round = 0; round < 3; ++round) late.rows.push_back({pair(1), pair(0), pair(3), pair(2)});
    late.rows.push_back({{}, pair(2), pair(1), {}});
    const auto over = [&](std::uint64_t count, std::uint64_t window) {
        return topology::verify_mixing(late, 4, {.count = count, .window = window});
    };
    CHECK(over(4, 4).ok);
    CHECK(!over(4, 3).ok);
    CHECK(over(4, 3).round == 0);
    CHECK(over(4, 3).rank == 2);
    CHECK_THROWS_AS(over(3, 4), rill::contract_violation);  // no whole window
    // One way only: rank 0's model reaches rank 1, and nothing comes back.
    table<false, false, true> one_way;
    one_way.rows.assign(3, {{.own_weight = 0.5, .receivers = {1}}, {.senders = {{0, 0.5}}}});
    const auto found = topology::verify_mixing(one_way, 2, {.count = 3, .window = 2});
    CHECK(!found.ok);
    CHECK(std::string(found.what).find("lead from it to rank 0") != std::string::npos);
}

TEST_CASE("verify_mixing: there is a rank and a round to look at") {
    CHECK_THROWS_AS(topology::verify_mixing(topology::ring_neighbours{}, 0), rill::contract_violation);
    CHECK_THROWS_AS(topology::verify_mixing(topology::ring_neighbours{}, -1), rill::contract_violation);
    CHECK_THROWS_AS(topology::connects(topology::ring_neighbours{}, 4, 0), rill::contract_violation);
}

}  // namespace mixing_proof_cases
