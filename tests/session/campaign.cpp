// One or several ranks die at any message or time, in networks of all kinds: the survivors of a step agree on one
// result.
#include <rill/core/random.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>

#include "../support/sanitized.hpp"
#include "recovery.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace faults = rill::faults;
namespace sim = rill::simulated;

namespace {

/// RILL_RECOVERY_RUNS: random runs per topology; if it is set, the exhaustive cases use all messages.
const char* const runs_wanted = std::getenv("RILL_RECOVERY_RUNS");
#ifdef RILL_TEST_SANITIZED
constexpr std::uint64_t random_runs_by_default = 10;
constexpr int message_step_by_default = 15;
#else
constexpr std::uint64_t random_runs_by_default = 40;
constexpr int message_step_by_default = 5;
#endif
const std::uint64_t random_runs =
    runs_wanted != nullptr ? std::strtoull(runs_wanted, nullptr, 10) : random_runs_by_default;
const int message_step = runs_wanted != nullptr ? 1 : message_step_by_default;

using player = std::string (*)(int ranks, int steps, const sim::network& net);
struct topology {
    const char* name;
    player play;
};
constexpr topology topologies[] = {{"ring", &recovery::play<rill::topology::ring>},
                                   {"recursive_doubling", &recovery::play<rill::topology::recursive_doubling>},
                                   {"halving_doubling", &recovery::play<rill::topology::halving_doubling>},
                                   {"tree", &recovery::play<rill::topology::tree>}};

struct tally {
    int runs = 0;
    int wrong = 0;
    std::string reports{};

    void add(const std::string& report) {
        ++runs;
        wrong += report.empty() ? 0 : 1;
        if (reports.size() < 4000) reports += report;
    }
};

sim::network wire(std::vector<rill::fault> planned, sim::control_plane control = sim::control_plane::ideal) {
    return {.latency = rill::microseconds(50),
            .bandwidth = 125'000'000,
            .faults = {std::move(planned)},
            .control = control};
}

/// A random network with one to three deaths, at a message or at a time. A timeout is 5 s; a failed agreement takes 10
/// s.
sim::network drawn(rill::random_sequence& draw, int ranks) {
    sim::network net = wire({});
    net.latency = rill::microseconds(static_cast<std::int64_t>(1 + draw.below(2000)));
    net.jitter = rill::microseconds(static_cast<std::int64_t>(draw.below(5000)));
    net.seed = draw.bits();
    if (net.seed % 2 == 0) net.control = sim::control_plane::travelling;
    for (std::uint64_t deaths = 1 + draw.below(3); deaths > 0; --deaths) {
        const rill::fault dies =
            faults::kill(static_cast<int>(draw.below(3) == 0 ? 0 : draw.below(static_cast<std::uint64_t>(ranks))));
        const auto within = static_cast<std::int64_t>(draw.below(2) == 0 ? 40'000 : 40'000'000);
        net.faults.faults.push_back(
            draw.below(2) == 0 ? dies.after(1 + draw.below(60))
                               : dies.at(rill::microseconds(
                                     1 + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(within))))));
    }
    if (draw.below(4) == 0) net.faults.faults.push_back(faults::delay_up_to(rill::milliseconds(20)));
    net.faults.seed = draw.bits();
    return net;
}

}  // namespace

TEST_CASE(
    "one rank dies after any number of messages: its survivors have the same steps, each the mean of its members") {
    for (const topology& on : topologies)
        for (const int steps : {1, 3}) {
            tally all;
            for (int ranks = 2; ranks <= 8; ++ranks)
                for (int victim = 0; victim < ranks; ++victim)
                    for (int after = 1; after <= 20 * steps; after += message_step)
                        all.add(on.play(ranks, steps,
                                        wire({faults::kill(victim).after(static_cast<std::uint64_t>(after))})));
            MESSAGE(std::string(on.name) << ", " << steps << " steps: " << all.runs << " runs, " << all.wrong
                                         << " wrong");
            CHECK(all.reports == "");
        }
}

TEST_CASE("two ranks die after any number of messages, and control travels") {
    for (const topology& on : topologies) {
        tally all;
        for (const int ranks : {3, 4, 5})
            for (int victim = 0; victim < ranks; ++victim)
                for (int after = 1; after <= 20; after += 2 * message_step)
                    for (int later = 1; later <= 40; later += 2 * message_step)
                        all.add(
                            on.play(ranks, 2,
                                    wire({faults::kill(victim).after(static_cast<std::uint64_t>(after)),
                                          faults::kill((victim + 1) % ranks).after(static_cast<std::uint64_t>(later))},
                                         sim::control_plane::travelling)));
        MESSAGE(std::string(on.name) << ": " << all.runs << " runs, " << all.wrong << " wrong");
        CHECK(all.reports == "");
    }
}

TEST_CASE("up to three ranks die at any time, also during an agreement, in random networks") {
    for (const topology& on : topologies) {
        tally all;
        for (std::uint64_t i = 0; i < random_runs; ++i) {
            rill::random_sequence draw(rill::random_key{i});
            const int ranks = 2 + static_cast<int>(draw.below(7));
            all.add(on.play(ranks, 3, drawn(draw, ranks)));
        }
        MESSAGE(std::string(on.name) << ": " << all.runs << " runs, " << all.wrong << " wrong");
        CHECK(all.reports == "");
    }
}
