// Pair averaging under every kind of fault: a run ends, all pushes are told, and what fails names who has suffered.
#include <rill/protocol/pair_averaging.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

namespace testing = rill::testing;

namespace {

template <class Who>
testing::call_result some_pushes(rill::simulated::endpoint& net, const testing::protocol_case& of, Who who) {
    const rill::train::descent plain{rill::train::sgd{}, rill::train::constant_rate{1}};
    std::vector<double> model(4);
    rill::pair_averaging replica{net, who, plain, model, {.timeout = rill::seconds(10)}};
    const std::uint64_t last = 1 + of.seed % 20;
    std::uint64_t pushes = 0, told = 0;
    const bool ends = of.seed % 3 == 0;
    while (const auto held = replica.pull(model)) {
        if (pushes == last) {
            ends ? replica.end() : replica.retire();
            continue;
        }
        net.compute(1);
        replica.push(model, *held);
        ++pushes;
    }
    while (const auto fate = replica.fate()) ++told;
    return {.is_exact = told == pushes};
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
    const auto on_one_rank = [&](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.restarts() > 0) return;
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        mine.attempt({.name = "pushes"}, [&] { return some_pushes(net, of, who); });
    };
    const std::uint64_t seeds = runs_in_all() / (2 * std::size(testing::every_fault_kind));
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const std::string report = test.run(kind, seed, on_one_rank);
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
