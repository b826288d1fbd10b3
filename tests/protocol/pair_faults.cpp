// Pair averaging under every kind of fault: a run ends, all pushes are told, and what fails names who has suffered.
// Where no message is lost and no rank dies, the sum of all models is what has been pushed. One rank or one link less
// ends no rank that reaches most of the others.
#include <rill/protocol/pair_averaging.hpp>
#include <rill/testing/exact_or_named_fault.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

namespace testing = rill::testing;

namespace {

/// What a rank has pushed, as far as it counted, and its final model.
struct account {
    double counted = 0;
    double model = 0;
    bool has_begun = false, has_ended = false;
};

template <class Who>
testing::call_result some_pushes(rill::simulated::endpoint& net, const testing::protocol_case& of, Who who,
                                 account& own) {
    const rill::train::descent plain{rill::train::sgd{}, rill::train::constant_rate{1}};
    std::vector<double> model(4);
    rill::pair_averaging replica{net, who, plain, model, {.timeout = rill::seconds(10)}};
    own.has_begun = true;
    const std::uint64_t last = 1 + of.seed % 20;
    std::uint64_t pushes = 0, told = 0;
    const bool ends = of.seed % 3 == 0;
    const auto gradient = [&](std::uint64_t push) { return static_cast<double>((push + 1) * 64) * (net.rank() - 3); };
    while (const auto held = replica.pull(model)) {
        if (pushes == last) {
            ends ? replica.end() : replica.retire();
            continue;
        }
        net.compute(1);
        replica.push(std::vector<double>(4, gradient(pushes)), *held);
        ++pushes;
    }
    own.has_ended = true;
    own.model = model[0];
    while (const auto fate = replica.fate()) {
        ++told;
        if (fate->what == rill::push_fate::outcome::counted) own.counted += gradient(fate->push);
    }
    return {.is_exact = told == pushes};
}

using what = rill::fault::what;

bool has_only(const rill::fault_plan& plan, std::initializer_list<what> kinds) {
    return std::all_of(plan.faults.begin(), plan.faults.end(), [&](const rill::fault& each) {
        return std::find(kinds.begin(), kinds.end(), each.kind) != kinds.end();
    });
}
bool loses_nothing(const rill::fault_plan& plan) {
    return has_only(plan, {what::duplicate, what::delay, what::reorder, what::slow});
}
/// Of one rank or one link.
bool is_an_end(const rill::fault_plan& plan) {
    return has_only(plan, {what::kill, what::restart, what::cut, what::heal});
}

/// Where all have agreed on the run.
std::string early_end(const std::vector<account>& all, const testing::run_record& seen) {
    if (!std::all_of(all.begin(), all.end(), [](const account& each) { return each.has_begun; })) return {};
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (!all[rank].has_ended && !seen.has_died(static_cast<rill::rank_t>(rank)))
            return "rank " + std::to_string(rank) + " failed though it reached most of the others";
    return {};
}

/// A descent moves a model by what has been pushed, with the sign turned.
std::string difference(const std::vector<account>& all) {
    double sum = 0;
    for (const account& each : all) sum += each.counted + each.model;
    return std::abs(sum) < 1e-6 ? "" : "the sum of all models is off by " + std::to_string(sum);
}

/// RILL_PAIR_RUNS=1000000 explores further.
std::uint64_t runs_in_all() {
    const char* const asked = std::getenv("RILL_PAIR_RUNS");
    if (asked != nullptr) return static_cast<std::uint64_t>(std::atoll(asked));
#ifdef RILL_TEST_SANITIZED
    return 400;
#else
    return 6'000;
#endif
}

template <class Who>
void explore(const char* name, Who who) {
    testing::protocol_test test(name, {.most_ranks = 8});
    std::vector<account> all;
    const auto on_one_rank = [&](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.rank() == 0) all.assign(static_cast<std::size_t>(of.ranks), {});
        if (net.restarts() > 0) return;
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        mine.attempt({.name = "pushes"},
                     [&] { return some_pushes(net, of, who, all[static_cast<std::size_t>(net.rank())]); });
    };
    const std::uint64_t seeds = runs_in_all() / (2 * std::size(testing::every_fault_kind));
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const auto check = [&](const testing::protocol_case& of, const testing::run_record& seen) {
                const std::string wrong = testing::exact_or_named_fault(of, seen);
                if (!wrong.empty()) return wrong;
                if (loses_nothing(of.faults)) return difference(all);
                return is_an_end(of.faults) && of.ranks > 2 ? early_end(all, seen) : wrong;
            };
            const std::string report = test.run(kind, seed, on_one_rank, check);
            CHECK_MESSAGE(report.empty(), testing::name(kind), ": ", report);
        }
}

}  // namespace

TEST_CASE("pair_averaging under faults: a bipartite pairing ends, or names the fault") {
    explore("bipartite", rill::topology::bipartite{});
}

TEST_CASE("pair_averaging under faults: anyone ends, or names the fault") {
    explore("anyone", rill::topology::anyone{});
}
