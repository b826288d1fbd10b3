// Collectives along a tree whose links fall silent, in virtual time.
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/is_silent.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sim = rill::simulated;
namespace faults = rill::faults;
using rill::milliseconds;
using rill::rank_t;
using rill::topology::backup_tree;

namespace {

/// What all ranks have after some steps, and what the receipts of the last one say.
struct outcome {
    std::vector<std::vector<float>> results;
    std::vector<rill::receipt> last;
    std::vector<rill::duration> steps{};        ///< how long each took on rank 0
    std::vector<std::vector<rank_t>> silent{};  ///< of each rank: to whom its links are silent at the end

    bool is_same(const outcome& other) const { return results == other.results; }
    int detours() const {
        int sum = 0;
        for (const rill::receipt& each : last) sum += each.detours;
        return sum;
    }
};

constexpr std::size_t dimension = 3000;
constexpr rill::group_options options{.timeout = rill::seconds(20)};

template <class Shape>
outcome run(const Shape& shape, int ranks, const rill::fault_plan& plan, int steps) {
    outcome all;
    all.results.resize(static_cast<std::size_t>(ranks));
    all.last.resize(static_cast<std::size_t>(ranks));
    all.silent.resize(static_cast<std::size_t>(ranks));
    sim::run(
        ranks, {.latency = rill::microseconds(50), .bandwidth = 100'000'000, .faults = plan}, [&](sim::endpoint& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            rill::group workers{net, shape, options};
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}}.bind(dimension);
            const rill::random_key key{static_cast<std::uint64_t>(net.rank())};
            std::vector<float> own(dimension), sum(dimension), sparse(dimension), rooted(dimension);
            std::vector<float>& kept = all.results[self];
            for (int step = 0; step < steps; ++step) {
                for (std::size_t i = 0; i < dimension; ++i)
                    own[i] = static_cast<float>(key.derive(static_cast<std::uint64_t>(step), i).value >> 40U) * 1e-5F;
                const rill::time_point begun = net.now();
                all.last[self] = rill::all_reduce(workers, own, sum);
                rill::all_reduce(workers, own, sparse, codec);
                const rank_t root = step % net.size();
                rill::reduce(workers, own, rooted, root);
                rill::broadcast(workers, rooted, root);
                rill::barrier(workers);
                if (net.rank() == 0) all.steps.push_back(net.now() - begun);
                for (const auto* each : {&sum, &sparse, &rooted}) kept.insert(kept.end(), each->begin(), each->end());
            }
            if constexpr (rill::DetouringTopology<Shape>)
                for (rank_t peer = 0; peer < ranks; ++peer)
                    if (peer != net.rank() && rill::is_silent(workers, peer)) all.silent[self].push_back(peer);
        });
    return all;
}

/// RILL_TREE_RUNS: how many random plans are played.
const char* const runs_wanted = std::getenv("RILL_TREE_RUNS");
#ifdef RILL_TEST_SANITIZED  // four times slower
constexpr std::uint64_t few_runs = 60;
#else
constexpr std::uint64_t few_runs = 150;
#endif

/// A link of the tree, or another one, is cut in one direction or both, at a time or a message, and perhaps healed.
void add_cut(rill::fault_plan& plan, rill::random_sequence& draw, int ranks) {
    const auto any = [&] { return static_cast<rank_t>(draw.below(static_cast<std::uint64_t>(ranks))); };
    rank_t one = any();
    while (one == 0) one = any();
    rank_t other = draw.below(4) != 0 ? backup_tree{}.parent(ranks, one) : any();
    if (other == one) other = one - 1;
    if (draw.below(2) == 0) std::swap(one, other);
    const bool both = draw.below(2) == 0, by_time = draw.below(2) == 0, heals = draw.below(3) == 0;
    const auto when = [&](const rill::fault& what, std::uint64_t later) {
        return by_time ? what.at(rill::microseconds(static_cast<std::int64_t>(later + draw.below(15'000))))
                       : what.after(later / 100 + draw.below(40));
    };
    plan.faults.push_back(when(both ? faults::cut_between(one, other) : faults::cut(one, other), 0));
    if (heals) plan.faults.push_back(when(both ? faults::heal_between(one, other) : faults::heal(one, other), 20'000));
}

outcome plain(int ranks, int steps) { return run(rill::topology::tree{}, ranks, {}, steps); }

}  // namespace

TEST_CASE("backup_tree: without faults all collectives have the bits of the plain tree, and nothing takes a detour") {
    for (const int ranks : {1, 2, 3, 5, 7, 8}) {
        CAPTURE(ranks);
        const outcome seen = run(backup_tree{}, ranks, {}, 3);
        CHECK(seen.is_same(plain(ranks, 3)));
        CHECK(seen.detours() == 0);
        for (const rill::receipt& each : seen.last) CHECK(each.contributors == ranks);
    }
}

TEST_CASE("backup_tree: whichever link is cut, results have the bits of the plain tree") {
    constexpr int ranks = 7, steps = 3;
    const outcome due = plain(ranks, steps);
    for (rank_t one = 0; one < ranks; ++one)
        for (rank_t other = 0; other < one; ++other)
            for (const rill::fault& cut :
                 {faults::cut_between(one, other), faults::cut(one, other), faults::cut(other, one)}) {
                CAPTURE(one);
                CAPTURE(other);
                const outcome seen = run(backup_tree{}, ranks, {{cut.at(milliseconds(2))}}, steps);
                CHECK(seen.is_same(due));
                if (!backup_tree{}.is_tree_link(ranks, one, other)) CHECK(seen.detours() == 0);
                if (backup_tree{}.is_tree_link(ranks, one, other) && cut.both_ways)
                    CHECK(seen.silent[static_cast<std::size_t>(one)] == std::vector<rank_t>{other});
            }
}

TEST_CASE("backup_tree: up to three cuts, healed or not, at any time or message: exact, with the receipts right") {
    constexpr int steps = 3;
    const auto runs = runs_wanted != nullptr ? std::strtoull(runs_wanted, nullptr, 10) : few_runs;
    std::vector<outcome> due;
    for (int ranks = 0; ranks <= 15; ++ranks) due.push_back(ranks < 5 ? outcome{} : plain(ranks, steps));
    for (std::uint64_t seed = 0; seed < runs; ++seed) {
        rill::random_sequence draw{rill::random_key{seed}};
        const int ranks = 5 + static_cast<int>(draw.below(11));
        rill::fault_plan plan{{}, seed};
        for (std::uint64_t cuts = 1 + draw.below(3); cuts > 0; --cuts) add_cut(plan, draw, ranks);
        const bool is_fixed = draw.below(2) == 0;
        const rill::detect when = is_fixed ? rill::detect::fixed(milliseconds(50)) : rill::detect::adaptive();
        CAPTURE(to_string(plan));
        CAPTURE(ranks);
        try {
            const outcome seen = run(backup_tree{2, when}, ranks, plan, steps);
            if (!seen.is_same(due[static_cast<std::size_t>(ranks)])) FAIL_CHECK("another result");
            for (const rill::receipt& each : seen.last)
                if (each.contributors != ranks) FAIL_CHECK("other contributors");
        } catch (const std::exception& thrown) {
            FAIL_CHECK(thrown.what());
        }
    }
}

TEST_CASE("backup_tree: the root goes on though both its links are cut, and so does a group of three with one") {
    const rill::fault_plan roots{
        {faults::cut_between(0, 1).at(milliseconds(2)), faults::cut_between(0, 4).at(milliseconds(2))}};
    CHECK(run(backup_tree{}, 7, roots, 4).is_same(plain(7, 4)));
    CHECK(run(backup_tree{}, 3, {{faults::cut_between(0, 1).at(milliseconds(1))}}, 4).is_same(plain(3, 4)));
    CHECK(run(backup_tree{}, 7, {{faults::cut_between(1, 0)}}, 2).is_same(plain(7, 2)));  // before the handshake
}

TEST_CASE("backup_tree: a cut is remembered, and a link that is healed is used again") {
    const rill::fault_plan plan{
        {faults::cut_between(2, 1).at(milliseconds(3)), faults::heal_between(2, 1).at(milliseconds(500))}};
    const backup_tree tree{2, rill::detect::fixed(milliseconds(100))};
    const outcome cut = run(tree, 7, plan, 2);
    CHECK(cut.silent[2] == std::vector<rank_t>{1});
    CHECK(cut.last[2].silent_links == 1);
    const outcome long_run = run(tree, 7, plan, 400);
    const auto late = static_cast<std::size_t>(std::count_if(
        long_run.steps.begin(), long_run.steps.end(), [](rill::duration took) { return took > milliseconds(100); }));
    CHECK(late == 1);  // the step in which the link was cut
    CHECK(long_run.last[2].silent_links == 0);
    CHECK(long_run.silent[2].empty());
    CHECK(long_run.detours() == 0);
}

TEST_CASE("backup_tree: a rank that dies ends the operation, soon where the group monitors, and is named") {
    for (const bool monitors : {true, false})
        for (rank_t victim = 0; victim < 7; ++victim) {
            int named = 0;
            rill::duration longest{};
            sim::run(7, {.faults = {{faults::kill(victim).at(milliseconds(1))}}}, [&](sim::endpoint& net) {
                rill::group workers{net, backup_tree{}, {.timeout = rill::seconds(2), .monitors = monitors}};
                std::vector<float> own(dimension), sum(dimension);
                try {
                    for (int step = 0; step < 1000; ++step) rill::all_reduce(workers, own, sum);
                } catch (const rill::error& thrown) {
                    named += thrown.culprit() == victim ? 1 : 0;
                    longest = std::max(longest, net.now() - rill::time_point{});
                }
            });
            CAPTURE(victim);
            CHECK(named == 6);
            CHECK((longest < milliseconds(10)) == monitors);
        }
}

TEST_CASE("backup_tree: two ranks have no detour, and a cut link ends both with its ends named") {
    std::string said;
    try {
        run(backup_tree{}, 2, {{faults::cut_between(0, 1).at(milliseconds(1))}}, 100);
    } catch (const rill::error& thrown) {
        said = thrown.what();
    }
    CHECK(said.find("rank 1") != std::string::npos);
}

TEST_CASE("backup_tree: parts are gathered and scattered along it") {
    constexpr int ranks = 5;
    sim::run(ranks, {.faults = {{faults::cut_between(0, 1).at(milliseconds(1))}}}, [&](sim::endpoint& net) {
        rill::group workers{net, backup_tree{}, options};
        for (int step = 0; step < 3; ++step) {
            const std::vector<int> own(4, static_cast<int>(net.rank()) + step), ones(20, 1);
            std::vector<int> all(20), part(4);
            rill::all_gather(workers, own, all);
            rill::reduce_scatter(workers, ones, part);
            for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == static_cast<int>(i / 4) + step);
            CHECK(part == std::vector<int>(4, ranks));
        }
    });
}

TEST_CASE("backup_tree: between threads results are those of the plain tree") {
    rill::in_process::run(5, [](rill::in_process::endpoint& net) {
        rill::group workers{net, backup_tree{3}, options};
        rill::group plain_workers{net, rill::topology::tree{3}, options};
        std::vector<float> own(dimension, 0.1F * static_cast<float>(net.rank())), sum(dimension), due(dimension);
        for (int step = 0; step < 20; ++step) {
            rill::all_reduce(workers, own, sum);
            rill::all_reduce(plain_workers, own, due);
            if (sum != due) throw std::runtime_error("other bits");
        }
    });
}
