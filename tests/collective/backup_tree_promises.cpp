// What docs/fault_tolerant_tree.md promises, with other arities, sizes and options than the default ones.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/is_silent.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sim = rill::simulated;
namespace faults = rill::faults;
using rill::detect;
using rill::rank_t;
using rill::seconds;
using rill::topology::backup_tree;

namespace {

using values_of_ranks = std::vector<std::vector<float>>;

sim::network with(std::vector<rill::fault> planned) {
    return {.latency = rill::microseconds(50),
            .bandwidth = 100'000'000,
            .faults = {std::move(planned)},
            .longest = seconds(1000)};
}

/// What all ranks have after each collective with each root.
template <class Shape>
values_of_ranks results(const Shape& shape, int ranks, std::size_t dimension, std::vector<rill::fault> plan) {
    values_of_ranks all(static_cast<std::size_t>(ranks));
    sim::run(ranks, with(std::move(plan)), [&](auto& net) {
        rill::group workers{net, shape, rill::group_options{.timeout = seconds(20)}};
        for (rank_t root = 0; root < ranks; ++root) {
            std::vector<float> own(dimension), sum(dimension), rooted(dimension);
            for (std::size_t i = 0; i < dimension; ++i)
                own[i] = 0.1F * static_cast<float>(i % 97) + 1.7F * static_cast<float>(net.rank() + root);
            rill::all_reduce(workers, own, sum);
            rill::reduce(workers, own, rooted, root);
            rill::broadcast(workers, rooted, root);
            rill::barrier(workers);
            rill::all_reduce(workers, own, own);
            std::vector<float>& kept = all[static_cast<std::size_t>(net.rank())];
            for (const auto* each : {&own, &sum, &rooted}) kept.insert(kept.end(), each->begin(), each->end());
        }
    });
    return all;
}

/// What a collective says on each rank; rank 2 has other options than the others if `odd` is given.
std::vector<std::string> said(const backup_tree& shape, const backup_tree& odd) {
    std::vector<std::string> all(4);
    sim::run(4, with({}), [&](auto& net) {
        try {
            rill::group workers{net, net.rank() == 2 ? odd : shape, rill::group_options{.timeout = seconds(5)}};
            rill::barrier(workers);
        } catch (const std::exception& thrown) {
            all[static_cast<std::size_t>(net.rank())] = thrown.what();
        }
    });
    return all;
}

}  // namespace

TEST_CASE("backup_tree: detours are all other ranks, each once, the same in both directions") {
    for (const int arity : {1, 2, 3, 8})
        for (int size = 2; size <= 12; ++size)
            for (rank_t one = 0; one < size; ++one)
                for (rank_t other = 0; other < one; ++other) {
                    const backup_tree shape{arity};
                    std::set<rank_t> seen{one, other};
                    for (int i = 0; i < size - 2; ++i) {
                        seen.insert(shape.detour(size, one, other, i));
                        CHECK(shape.detour(size, one, other, i) == shape.detour(size, other, one, i));
                    }
                    CHECK(seen.size() == static_cast<std::size_t>(size));
                    CHECK(*seen.begin() == 0);
                    CHECK(*seen.rbegin() == size - 1);
                }
}

TEST_CASE("backup_tree: of any arity, with any number of ranks and elements, it has the bits of the plain tree") {
    for (const int arity : {1, 3, 8})
        for (const int ranks : {1, 2, 3, 7})
            for (const std::size_t dimension : {0U, 1U, 20'000U})
                CHECK(results(backup_tree{arity}, ranks, dimension, {}) ==
                      results(rill::topology::tree{arity}, ranks, dimension, {}));
}

TEST_CASE("backup_tree: P - 2 links are cut, whichever they are, and all results stay") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        rill::random_sequence draw{rill::random_key{seed}};
        const int arity = static_cast<int>(1 + draw.below(4)), ranks = static_cast<int>(3 + draw.below(5));
        const std::size_t dimension = std::vector<std::size_t>{0, 1, 300, 20'000}[draw.below(4)];
        std::vector<rill::fault> plan;
        std::set<std::pair<rank_t, rank_t>> cut;
        while (cut.size() < static_cast<std::size_t>(ranks - 2)) {
            const auto any = [&] { return static_cast<rank_t>(draw.below(static_cast<std::uint64_t>(ranks))); };
            const rank_t one = any(), other = any();
            if (one == other || !cut.insert(std::minmax(one, other)).second) continue;
            const rill::fault what = draw.below(2) == 0 ? faults::cut(one, other) : faults::cut_between(one, other);
            plan.push_back(draw.below(2) == 0
                               ? what.at(rill::microseconds(static_cast<std::int64_t>(2000 + draw.below(30'000))))
                               : what.after(20 + draw.below(40)));
        }
        CAPTURE(seed);
        CAPTURE(to_string(rill::fault_plan{plan}));
        CHECK(results(backup_tree{arity}, ranks, dimension, plan) ==
              results(rill::topology::tree{arity}, ranks, dimension, {}));
    }
}

TEST_CASE("backup_tree: options out of range are refused by name, on each rank") {
    const std::vector<std::pair<backup_tree, std::string>> wrong{
        {{.arity = 0}, "topology::tree: arity is 0; it must be at least 1"},
        {{.detect = detect::fixed(seconds(0))}, "detect, first (ns) is 0; it must be above 0"},
        {{.detect = detect::adaptive(seconds(-1))}, "detect, first (ns) is -1000000000; it must be above 0"},
        {{.detect = detect::adaptive(seconds(1), seconds(0))}, "detect, least (ns) is 0; it must be above 0"},
        {{.chunk_bytes = 0}, "chunk_bytes is 0; it must be above 0"}};
    for (const auto& [shape, why] : wrong) {
        const std::vector<std::string> all = said(shape, shape);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            CHECK(all[rank].find(why) != std::string::npos);
            CHECK(all[rank].find("on rank " + std::to_string(rank)) != std::string::npos);
        }
    }
}

TEST_CASE("backup_tree: a rank with other options is named on all") {
    for (const backup_tree& odd :
         {backup_tree{3}, backup_tree{.detect = detect::fixed(seconds(1))}, backup_tree{.chunk_bytes = 64}})
        for (const std::string& each : said(backup_tree{}, odd)) {
            CHECK(each.find("rank 2") != std::string::npos);
            CHECK(each.find("topology") != std::string::npos);
        }
}

TEST_CASE("backup_tree: after an error a group says the same again, and another one on the transport goes on") {
    sim::run(4, with({}), [](auto& net) {
        rill::group first{net, backup_tree{}, rill::group_options{.timeout = seconds(5)}};
        rill::group second{net, backup_tree{3}, rill::group_options{.timeout = seconds(5), .name = "second"}};
        for (int times = 0; times < 2; ++times) {
            std::vector<float> own(net.rank() == 2 ? 11 : 10, 1.0F), sum(own.size());
            std::string why;
            try {
                rill::all_reduce(first, own, sum);
            } catch (const rill::error& thrown) {
                why = thrown.what();
            }
            CHECK(why.find("rank 2") != std::string::npos);
            CHECK(sum[0] == 0);
        }
        std::vector<float> own(10, 1.0F), sum(10);
        rill::all_reduce(second, own, sum);
        CHECK(sum[9] == 4);
    });
}

TEST_CASE("backup_tree: whoever dies, or makes another call, is named on all though a link was cut before") {
    constexpr int ranks = 5;
    for (rank_t culprit = 0; culprit < ranks; ++culprit)
        for (rank_t below = 1; below < ranks; ++below)
            for (const bool dies : {true, false}) {
                const rank_t above = backup_tree{}.parent(ranks, below);
                if (dies && (culprit == below || culprit == above)) continue;
                CAPTURE(culprit);
                CAPTURE(below);
                CAPTURE(dies);
                std::vector<rill::fault> plan{faults::cut_between(below, above).at(rill::milliseconds(2))};
                if (dies) plan.push_back(faults::kill(culprit).at(rill::milliseconds(30)));
                int named = 0;
                sim::run(ranks, with(plan), [&](auto& net) {
                    rill::group workers{net, backup_tree{}, rill::group_options{.timeout = seconds(5)}};
                    std::vector<float> own(30, 1.0F), sum(30), other(31);
                    try {
                        for (int step = 0; step < 20 || dies; ++step) rill::all_reduce(workers, own, sum);
                        net.rank() == culprit ? rill::all_reduce(workers, other, other)
                                              : rill::all_reduce(workers, own, sum);
                    } catch (const rill::error& thrown) {
                        named += thrown.culprit() == culprit ? 1 : 0;
                    }
                });
                CHECK(named == (dies ? ranks - 1 : ranks));
            }
}

TEST_CASE("is_silent: to itself and before any operation no link is silent, and a rank outside the group is refused") {
    sim::run(3, with({}), [](auto& net) {
        rill::group workers{net, backup_tree{}};
        for (rank_t peer = 0; peer < 3; ++peer) CHECK(!rill::is_silent(workers, peer));
        CHECK_THROWS_AS(rill::is_silent(workers, -1), rill::contract_violation);
        CHECK_THROWS_AS(rill::is_silent(workers, 3), rill::contract_violation);
    });
}
