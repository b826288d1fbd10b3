// Elastic teams in which a rank falls silent: for good, for a while, or only to another one.
#include <rill/collective/all_reduce.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace faults = rill::faults;
namespace sim = rill::simulated;
using elastic_scene::model;
using rill::rank_t;

namespace {

constexpr int ranks = 4;
constexpr rill::duration silence = rill::seconds(1);
constexpr rill::elastic_options options{.timeout = rill::seconds(60), .patience = rill::seconds(3)};
/// What agreements and steps take.
constexpr rill::duration little = rill::milliseconds(200);

sim::network with(std::vector<rill::fault> planned) {
    return {.faults = {std::move(planned)}, .silence = silence, .longest = rill::seconds(2000)};
}

/// `one` hears nobody, and nobody hears it, from `begins` to `ends`.
std::vector<rill::fault> silent(rank_t one, rill::duration begins, rill::duration ends = rill::seconds(3000)) {
    std::vector<rill::fault> plan;
    for (rank_t other = 0; other < ranks; ++other) {
        if (other == one) continue;
        plan.push_back(faults::cut_between(one, other).at(begins));
        plan.push_back(faults::heal_between(one, other).at(ends));
    }
    return plan;
}

/// How a rank has fared.
struct course {
    std::vector<rill::time_point> commits{};
    std::vector<std::string> errors{};
    bool is_excluded = false, is_without_quorum = false;
    std::size_t members = 0;
    model state{};

    /// The longest time between two commits.
    rill::duration longest_pause() const {
        rill::duration longest{};
        for (std::size_t i = 1; i < commits.size(); ++i) longest = std::max(longest, commits[i] - commits[i - 1]);
        return longest;
    }
};

/// Takes steps until there are `steps`, or until the third error. `within(step)` is called in the attempt.
template <class Shape, class Net, class Within>
course train(Net& net, std::uint64_t steps, Within&& within) {
    course own;
    try {
        rill::elastic team{net, Shape{}, options};
        while (team.step() < steps && own.errors.size() < 3) {
            team.settle(own.state);
            if (team.step() >= steps) break;
            net.sleep_until(net.now() + rill::milliseconds(1));
            std::vector<double> mine(20, net.rank() + 1.0), sum(20);
            try {
                const bool is_done = team.attempt([&](auto& workers) {
                    within(team.step());
                    rill::all_reduce(workers, mine, sum);
                });
                if (!is_done) continue;
                own.state.add(sum);
                own.commits.push_back(net.now());
            } catch (const rill::peer_failure& thrown) {
                own.errors.push_back(thrown.what());
            } catch (const rill::timeout& thrown) {
                if (dynamic_cast<const rill::excluded*>(&thrown) != nullptr) throw;
                if (dynamic_cast<const rill::no_quorum*>(&thrown) != nullptr) throw;
                own.errors.push_back(thrown.what());
            }
        }
        own.members = team.view().members.size();
        team.finish();
    } catch (const rill::excluded&) {
        own.is_excluded = true;
    } catch (const rill::no_quorum&) {
        own.is_without_quorum = true;
    }
    return own;
}
template <class Shape, class Within>
std::vector<course> play(const sim::network& on, std::uint64_t steps, Within&& within) {
    std::vector<course> all(ranks);
    sim::run(ranks, on, [&](auto& net) {
        all[static_cast<std::size_t>(net.rank())] =
            train<Shape>(net, steps, [&](std::uint64_t step) { within(net, step); });
    });
    return all;
}
constexpr auto nothing = [](auto&, std::uint64_t) {};

template <class Shape>
void check_that_the_others_go_on(rank_t victim, rill::duration begins) {
    CAPTURE(victim);
    CAPTURE(begins.ns);
    const std::vector<course> all = play<Shape>(with(silent(victim, begins)), 10, nothing);
    for (rank_t rank = 0; rank < ranks; ++rank) {
        CAPTURE(rank);
        const course& own = all[static_cast<std::size_t>(rank)];
        if (rank == victim) {
            CHECK(own.is_without_quorum);
            continue;
        }
        CHECK(own.errors.empty());
        CHECK(own.members == ranks - 1);
        CHECK(own.state.steps == 10);
        CHECK(own.longest_pause().ns < (silence + options.patience + little).ns);
    }
}

}  // namespace

TEST_CASE(
    "a member that is silent to all others costs them the transport's time and the patience, whatever the timeout") {
    for (rank_t victim = 0; victim < ranks; ++victim)
        for (std::int64_t begins = 3000; begins < 4600; begins += 150) {
            check_that_the_others_go_on<rill::topology::ring>(victim, rill::microseconds(begins));
            check_that_the_others_go_on<rill::topology::tree>(victim, rill::microseconds(begins));
            check_that_the_others_go_on<rill::topology::backup_tree>(victim, rill::microseconds(begins));
        }
}

TEST_CASE("a collective over a cut link fails and names both ends, and others that reach both keep them") {
    for (const bool one_way : {false, true}) {
        CAPTURE(one_way);
        const auto cut = one_way ? faults::cut(1, 2) : faults::cut_between(1, 2);
        const std::vector<course> all =
            play<rill::topology::ring>(with({cut.at(rill::microseconds(3900))}), 10, nothing);
        for (const course& own : all) {
            CHECK(!own.is_excluded);
            CHECK(!own.is_without_quorum);
            CHECK(own.members == ranks);
            REQUIRE(own.errors.size() == 3);
            for (const std::string& said : own.errors) {
                CHECK_MESSAGE(said.find("rank 1") != std::string::npos, said);
                CHECK_MESSAGE(said.find("rank 2") != std::string::npos, said);
            }
        }
    }
}

TEST_CASE("a member that computes for longer than any patience is waited for") {
    const auto computes = [](auto& net, std::uint64_t step) {
        if (net.rank() == 1 && step == 3) net.sleep_until(net.now() + rill::seconds(50));
    };
    // A link that nothing is waited for on is cut: signs of life are missed, and nobody is left out for it.
    const auto plan = {faults::cut_between(1, 3).at(rill::milliseconds(1))};
    for (const course& own : play<rill::topology::tree>(with(plan), 10, computes)) {
        CHECK(own.errors.empty());
        CHECK(own.members == ranks);
        CHECK(own.state.steps == 10);
    }
}

TEST_CASE("with detours a member that others reach is waited for, however long they compute before they can say so") {
    for (rank_t one = 0; one < ranks; ++one)
        for (rank_t other = 0; other < one; ++other) {
            CAPTURE(one);
            CAPTURE(other);
            const auto computes = [&](auto& net, std::uint64_t step) {
                if (net.rank() != one && net.rank() != other && step == 3)
                    net.sleep_until(net.now() + rill::seconds(20));
            };
            const auto plan = {faults::cut_between(one, other).at(rill::microseconds(4500))};
            for (const course& own : play<rill::topology::backup_tree>(with(plan), 10, computes)) {
                CHECK(own.errors.empty());
                CHECK(own.members == ranks);
                CHECK(own.state.steps == 10);
            }
        }
}

TEST_CASE("a member that is silent for a while is back in time, or is left out: no step fails") {
    int left_out = 0, back = 0;
    for (std::int64_t lasts = 100; lasts <= 9000; lasts += lasts < 900 || lasts > 1200 ? 100 : 4) {
        CAPTURE(lasts);
        const auto hangs = [&](auto& net, std::uint64_t step) {
            const rill::time_point end = rill::time_point{} + rill::seconds(2) + rill::milliseconds(lasts);
            if (net.rank() == 3 && step == 3) net.sleep_until(end);
            if (step == 8) net.sleep_until(end + rill::seconds(2));  // somebody is there to answer it
        };
        // Nobody sends to a leaf of the tree before it has contributed, so that no message is lost.
        const sim::network on = with(silent(3, rill::seconds(2), rill::seconds(2) + rill::milliseconds(lasts)));
        const std::vector<course> all = play<rill::topology::tree>(on, 10, hangs);
        const bool is_left_out = all[3].is_excluded;
        ++(is_left_out ? left_out : back);
        for (const course& own : all) {
            for (const std::string& said : own.errors) CHECK(said == "");
            CHECK(!own.is_without_quorum);
            if (own.is_excluded) continue;
            CHECK(own.members == (is_left_out ? ranks - 1U : ranks));
            CHECK(own.state == all[0].state);
            CHECK(own.state.steps == 10);
        }
    }
    CHECK(left_out > 0);
    CHECK(back > 0);
}
