#include <rill/aggregate/add.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/topology/ring.hpp>

#include <doctest/doctest.h>

#include "../support/sanitized.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace testing = rill::testing;

namespace {

/// A run of some rounds; exact if each push of this rank was told once, and the model holds those that counted.
template <class Start, class Age>
testing::call_result some_rounds(rill::simulated::endpoint& net, const testing::protocol_case& of, Start start,
                                 Age age) {
    rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10)}};
    std::vector<double> model(static_cast<std::size_t>(net.size())), gradient = model;
    gradient[static_cast<std::size_t>(net.rank())] = 1;
    rill::partial_all_reduce replica{workers, start, age, rill::straggler::plain_sum{}, rill::aggregate::add{}, model};
    const std::uint64_t last = 1 + of.seed % 8;
    std::uint64_t pushes = 0, told = 0, counted = 0;
    while (const auto held = replica.pull(model)) {
        if (held->version >= last) {
            replica.end();
            continue;
        }
        net.compute(1);
        replica.push(gradient, *held);
        ++pushes;
    }
    while (const auto fate = replica.fate()) {
        ++told;
        counted += fate->what == rill::push_fate::outcome::counted ? 1 : 0;
    }
    std::uint64_t bits = replica.version();
    for (const double each : model) bits = rill::mix64(bits, static_cast<std::uint64_t>(each));
    return {.is_exact = told == pushes && model[static_cast<std::size_t>(net.rank())] == static_cast<double>(counted),
            .bits = bits};
}

/// RILL_PARTIAL_RUNS=1000000 explores further, RILL_PARTIAL_SEED=5000 from this seed on.
std::uint64_t runs_in_all() {
    const char* const asked = std::getenv("RILL_PARTIAL_RUNS");
    if (asked != nullptr) return static_cast<std::uint64_t>(std::atoll(asked));
#ifdef RILL_TEST_SANITIZED
    return 400;
#else
    return 10'000;
#endif
}

std::uint64_t first_seed() {
    const char* const asked = std::getenv("RILL_PARTIAL_SEED");
    return asked == nullptr ? 0 : static_cast<std::uint64_t>(std::atoll(asked));
}

template <class Start, class Age>
auto one_rank_of(Start start, Age age) {
    return [=](auto& net, const testing::protocol_case& of, testing::rank_record& mine) {
        if (net.restarts() > 0) return;
        net.sleep_until(net.now() + testing::entry_delay(of, net.rank(), 0));
        mine.attempt({.name = "rounds"}, [&] { return some_rounds(net, of, start, age); });
    };
}

template <class Start, class Age>
void explore(const char* name, Start start, Age age) {
    testing::protocol_test test(name, {.most_ranks = 8});
    const auto on_one_rank = one_rank_of(start, age);
    const std::uint64_t first = first_seed(), seeds = runs_in_all() / (3 * std::size(testing::every_fault_kind));
    for (const testing::fault_kind kind : testing::every_fault_kind)
        for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
            const std::string report = test.run(kind, seed, on_one_rank);
            CHECK_MESSAGE(report.empty(), testing::name(kind), ": ", report);
        }
}

}  // namespace

TEST_CASE("partial_all_reduce under faults: RNA is exact or names the fault") {
    explore("rna", rill::straggler::two_choices{2}, rill::straggler::bounded{4});
}

TEST_CASE("partial_all_reduce under faults: eager rounds are exact or name the fault") {
    explore("eager", rill::straggler::majority{}, rill::straggler::in_step{});
}

TEST_CASE("partial_all_reduce under faults: lockstep is exact or names the fault") {
    explore("all_ready", rill::straggler::all_ready{}, rill::straggler::in_step{});
}

TEST_CASE("partial_all_reduce under faults: who waits in the operation before may wait for a rank that waits itself") {
    testing::protocol_test test("chain", {.most_ranks = 8});
    const auto found = testing::parse_protocol_case("run 15756 ranks 8 size 0: seed 0; kill rank 4 after 15");
    CHECK(test.run(found, one_rank_of(rill::straggler::all_ready{}, rill::straggler::in_step{})) == "");
}
