// Gossip with a coordinator under every kind of fault: both models of a pair are mixed or none, whole numbers keep
// their sum, and only ranks that a fault has cut off from the coordinator do not reach the end.
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace testing = rill::testing;
using rill::rank_t;

namespace {

constexpr std::size_t dimension = 12;

struct account {
    std::vector<double> model;
    std::vector<std::pair<std::uint64_t, rank_t>> mixed;  ///< rounds and peers
    bool has_agreed = false, has_left = false, has_ended = false;
};

/// Whole numbers that can be halved as often as there are rounds.
std::vector<double> first_model(rank_t rank) {
    std::vector<double> model(dimension);
    for (std::size_t i = 0; i < dimension; ++i)
        model[i] = static_cast<double>(rill::mix64(static_cast<std::uint64_t>(rank), i) % 1000 << 20U);
    return model;
}

void some_rounds(rill::simulated::endpoint& net, const testing::protocol_case& of, bool trains, account& own) {
    rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10)}};
    rill::gossip saps{workers, rill::topology::random_matching{},
                      rill::coordinated{.rounds = 1 + of.seed % 12, .patience = rill::seconds(100), .trains = trains}};
    own.has_agreed = true;
    auto codec = rill::compress::random_mask{.density = of.seed % 3 == 0 ? 1 : 0.3}.bind<double>(dimension);
    while (saps.next()) {
        net.compute(1);
        const std::uint64_t round = saps.round();
        if (of.seed % 4 == 1 && net.rank() == 1 && round == 2 && !own.has_left) {
            own.has_left = true;
            saps.leave();
            net.compute(static_cast<double>(of.seed % 5));
            saps.join(own.model);
            continue;
        }
        for (const auto& each : saps.mix(own.model, codec).in)
            if (each.rank != net.rank()) own.mixed.emplace_back(round, each.rank);
    }
    own.has_ended = true;
}

/// Of every two ranks that have not died, both have mixed or none; but one that has not reached the end may lack its
/// last exchange.
std::string half_an_exchange(const std::vector<account>& all, const testing::run_record& seen) {
    for (rank_t rank = 0; rank < static_cast<rank_t>(all.size()); ++rank)
        for (const auto& [round, peer] : all[static_cast<std::size_t>(rank)].mixed) {
            const account& other = all[static_cast<std::size_t>(peer)];
            if (std::count(other.mixed.begin(), other.mixed.end(), std::pair(round, rank)) == 1) continue;
            const bool is_out = seen.has_died(peer) || !other.has_ended;
            if (is_out && (other.mixed.empty() || other.mixed.back().first < round)) continue;
            return "in round " + std::to_string(round) + " rank " + std::to_string(rank) + " has mixed and rank " +
                   std::to_string(peer) + " has not";
        }
    return {};
}
std::string difference(const std::vector<account>& all) {
    for (std::size_t i = 0; i < dimension; ++i) {
        double sum = 0;
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            sum += all[rank].model[i] - first_model(static_cast<rank_t>(rank))[i];
        if (sum != 0) return "the sum of all models is off by " + std::to_string(sum);
    }
    return {};
}

/// Who fails names a rank that died, or a link that failed; but a newcomer may come after the end.
std::string wrong_blame(const std::vector<account>& all, const testing::run_record& seen) {
    for (rank_t rank = 0; rank < static_cast<rank_t>(seen.ranks.size()); ++rank) {
        if (seen.has_died(rank) || all[static_cast<std::size_t>(rank)].has_left) continue;
        for (const auto& call : seen.ranks[static_cast<std::size_t>(rank)].calls)
            if (call.came == testing::call_record::end::failed && !seen.has_died(call.culprit) &&
                !seen.has_failed_between(call.culprit, call.other))
                return "rank " + std::to_string(rank) + " blames who is well: " + call.said;
    }
    return {};
}
/// Where all have agreed, and the coordinator lives, a rank that reaches it ends well.
std::string early_end(const std::vector<account>& all, const testing::run_record& seen) {
    for (const account& each : all)
        if (!each.has_agreed) return {};
    if (seen.has_died(0)) return {};
    for (rank_t rank = 0; rank < static_cast<rank_t>(all.size()); ++rank)
        if (!all[static_cast<std::size_t>(rank)].has_ended && !seen.has_died(rank) &&
            !seen.has_failed_between(0, rank) && !all[static_cast<std::size_t>(rank)].has_left)
            return "rank " + std::to_string(rank) + " fails though it reaches the coordinator";
    return {};
}

/// RILL_GOSSIP_RUNS=1000000 explores further.
std::uint64_t runs_in_all() {
    const char* const asked = std::getenv("RILL_GOSSIP_RUNS");
    if (asked != nullptr) return static_cast<std::uint64_t>(std::atoll(asked));
#ifdef RILL_TEST_SANITIZED
    return 200;
#else
    return 2'000;
#endif
}

void explore(const char* name, bool trains) {
    testing::protocol_test test(name, {.most_ranks = 6});
    std::vector<account> all;
    const auto on_one_rank = [&](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.restarts() > 0) return;
        if (net.rank() == 0) {
            all.assign(static_cast<std::size_t>(of.ranks), {});
            for (std::size_t rank = 0; rank < all.size(); ++rank)
                all[rank].model = first_model(static_cast<rank_t>(rank));
        }
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        mine.attempt({.name = "rounds"}, [&]() -> testing::call_result {
            some_rounds(net, of, trains, all[static_cast<std::size_t>(net.rank())]);
            return {.is_exact = true};
        });
    };
    const auto check = [&](const testing::protocol_case&, const testing::run_record& seen) {
        if (!seen.ended_by.empty()) return seen.ended_by;
        std::string wrong = wrong_blame(all, seen);
        if (wrong.empty()) wrong = half_an_exchange(all, seen);
        if (wrong.empty()) wrong = early_end(all, seen);
        const bool all_end =
            std::all_of(all.begin(), all.end(), [](const account& each) { return each.has_ended && !each.has_left; });
        return wrong.empty() && all_end ? difference(all) : wrong;
    };
    const std::uint64_t seeds = runs_in_all() / (2 * std::size(testing::every_fault_kind));
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const std::string report = test.run(kind, seed, on_one_rank, check);
            CHECK_MESSAGE(report.empty(), testing::name(kind), ": ", report);
        }
}

}  // namespace

TEST_CASE("coordinated gossip under faults: both or none, where the coordinator trains") { explore("trains", true); }

TEST_CASE("coordinated gossip under faults: both or none, where the coordinator does not train") {
    explore("coordinates", false);
}
