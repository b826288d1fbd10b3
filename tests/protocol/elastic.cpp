// What an elastic team does when a rank dies, fails, leaves, comes, or is cut off.
#include <rill/collective/all_reduce.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace faults = rill::faults;
namespace sim = rill::simulated;
using elastic_scene::model;

namespace {

constexpr rill::elastic_options options{.timeout = rill::seconds(20)};

sim::network with(std::vector<rill::fault> planned) {
    return {.faults = {std::move(planned)}, .silence = rill::seconds(1), .longest = rill::seconds(1000)};
}

/// Takes steps of one all-reduce each until there are `steps`. Returns how many this rank has repeated.
template <class Team, class Net>
int train_until(Team& team, Net& net, model& state, std::uint64_t steps) {
    int repeated = 0;
    while (team.step() < steps) {
        team.settle(state);
        if (team.step() >= steps) break;
        net.sleep_until(net.now() + rill::milliseconds(1));
        std::vector<double> mine(20, net.rank() + 1.0), sum(20);
        if (team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); }))
            state.add(sum);
        else
            ++repeated;
    }
    return repeated;
}
template <class Team, class Net>
int train(Team& team, Net& net, model& state, std::uint64_t steps) {
    const int repeated = train_until(team, net, state, steps);
    team.finish();
    return repeated;
}

}  // namespace

TEST_CASE("when a member dies, the others repeat the step at once") {
    std::vector<int> repeated(4, -1);
    std::vector<rill::time_point> ended(4);
    sim::run(4, with({faults::kill(2).at(rill::microseconds(4200))}), [&](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, options};
        model state;
        const auto self = static_cast<std::size_t>(net.rank());
        repeated[self] = train(team, net, state, 10);
        CHECK(team.view().members == std::vector<rill::rank_t>{0, 1, 3});
        CHECK(state.steps == 10);
        CHECK(state.latest[0] == 7);
        ended[self] = net.now();
    });
    CHECK(repeated == std::vector<int>{1, 1, -1, 1});
    for (const std::size_t rank : {0U, 1U, 3U}) CHECK(ended[rank].ns < rill::milliseconds(14).ns);
}

TEST_CASE("an exception in a step is thrown on all members, which then go on") {
    sim::run(3, with({}), [](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, options};
        model state;
        team.settle(state);
        std::vector<double> mine(20, 1.0), sum(20);
        std::string said;
        try {
            team.attempt([&](auto& workers) {
                if (net.rank() == 1) throw std::runtime_error("no more rows");
                rill::all_reduce(workers, mine, sum);
            });
        } catch (const std::exception& thrown) {
            said = thrown.what();
        }
        CHECK(said.find("no more rows") != std::string::npos);
        CHECK(team.step() == 0);
        train(team, net, state, 3);
        CHECK(team.view().members.size() == 3);
        CHECK(state.steps == 3);
    });
}

TEST_CASE("an exception that leaves the body of a rank ends that rank, and the others go on") {
    for (const bool in_finish : {false, true}) {
        CAPTURE(in_finish);
        std::atomic<int> completed{0};
        const auto body = [&](auto& net) {
            rill::elastic team{net, rill::topology::ring{}, options};
            model state;
            const bool throws = net.rank() == 2;
            if (throws) {
                train_until(team, net, state, in_finish ? 10 : 4);
                throw std::out_of_range("no more rows");
            }
            train_until(team, net, state, 10);
            if (net.rank() == 0) net.sleep_until(net.now() + rill::milliseconds(5));
            team.finish();
            CHECK(state.steps == 10);
            CHECK(state.latest[0] == (in_finish ? 10 : 7));
            if (!in_finish) CHECK(team.view().members == std::vector<rill::rank_t>{0, 1, 3});
            net.sleep_until(net.now() + rill::milliseconds(1));
            ++completed;
        };
        for (const auto control : {sim::control_plane::ideal, sim::control_plane::travelling}) {
            sim::network all = with({});
            all.control = control;
            CHECK_THROWS_WITH_AS(sim::run(4, all, body), "no more rows", std::out_of_range);
        }
        CHECK_THROWS_WITH_AS(rill::in_process::run(4, body), "no more rows", std::out_of_range);
        CHECK(completed == 9);
    }
}

TEST_CASE("who has not entered is named on all that have") {
    sim::run(3, with({}), [](auto& net) {
        rill::elastic team{net, rill::topology::tree{}, {.timeout = rill::seconds(2), .patience = rill::seconds(1)}};
        model state;
        team.settle(state);
        std::vector<double> mine(20, 1.0), sum(20);
        if (net.rank() == 2) net.sleep_until(net.now() + rill::seconds(30));
        try {
            const bool is_done = team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); });
            CHECK(net.rank() == 2);
            CHECK(!is_done);
        } catch (const rill::timeout& thrown) {
            CHECK(std::string(thrown.what()).find("rank 2 has not entered") != std::string::npos);
        } catch (const rill::no_quorum&) {
            CHECK(net.rank() == 2);
        }
    });
}

TEST_CASE("a member leaves, and the others go on without it") {
    const auto body = [](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, options};
        model state;
        train(team, net, state, 0);
        for (int i = 0; i < 3 || (net.rank() != 0 && team.step() < 6);) {
            team.settle(state);
            std::vector<double> mine(20, net.rank() + 1.0), sum(20);
            if (!team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); })) continue;
            state.add(sum);
            ++i;
        }
        if (net.rank() == 0) {
            team.leave();
            CHECK(!team.is_member());
            CHECK_THROWS_AS(team.settle(state), rill::excluded);
            return;
        }
        CHECK(team.view().members == std::vector<rill::rank_t>{1, 2});
        CHECK(state.latest[0] == 5);
        team.finish();
    };
    sim::run(3, with({}), body);
    rill::in_process::run(3, body);
}

TEST_CASE("a rank that begins anew gets the state, and is a member again") {
    int taken_in = 0;
    sim::run(4, with({faults::kill(1).at(rill::microseconds(4200)), faults::restart(1).at(rill::milliseconds(3))}),
             [&](auto& net) {
                 rill::elastic team{net, rill::topology::ring{}, options};
                 model state;
                 train(team, net, state, 200);
                 CHECK(team.view().members.size() == 4);
                 CHECK(state.steps == 200);
                 CHECK(state.latest[0] == 10);
                 taken_in += net.restarts();
             });
    CHECK(taken_in == 1);
}

TEST_CASE("a rank that begins anew at once after its end is missed at once") {
    for (rill::rank_t dies = 0; dies < 3; ++dies)
        for (std::uint64_t posts = 1; posts < 30; ++posts) {  // from the first greeting on
            CAPTURE(dies);
            CAPTURE(posts);
            int at_end = 0;
            const auto planned = {faults::kill(dies).after(posts), faults::restart(dies).at(rill::nanoseconds(1))};
            sim::run(3, with(planned), [&](auto& net) {
                rill::elastic team{net, rill::topology::ring{}, options};
                model state;
                train(team, net, state, 8);
                CHECK(net.now().ns < rill::milliseconds(100).ns);
                CHECK(team.view().members.size() == 3);
                ++at_end;
            });
            CHECK(at_end == 3);
        }
}

TEST_CASE("who dies while the ranks meet is missed by all, or by none") {
    for (rill::rank_t dies = 0; dies < 4; ++dies)
        for (std::uint64_t posts = 1; posts < 10; ++posts)
            for (const bool comes_back : {false, true}) {
                CAPTURE(dies);
                CAPTURE(posts);
                CAPTURE(comes_back);
                std::vector<std::vector<rill::rank_t>> members;
                std::vector<rill::fault> planned{faults::kill(dies).after(posts)};
                if (comes_back) planned.push_back(faults::restart(dies).at(rill::milliseconds(3)));
                sim::run(4, with(planned), [&](auto& net) {
                    rill::elastic team{net, rill::topology::ring{}, options};
                    model state;
                    train(team, net, state, 8);
                    CHECK(net.now().ns < rill::milliseconds(100).ns);
                    members.push_back(team.view().members);
                });
                REQUIRE(members.size() == (comes_back ? 4 : 3));
                for (const auto& each : members) CHECK(each == members.front());
                CHECK(members.front().size() == members.size());
            }
}

TEST_CASE("two ranks that are parted before they meet are members: detours go round, a ring names both ends") {
    const auto done_over = [](auto shape, rill::rank_t low, rill::rank_t high) {
        int done = 0;
        sim::run(5, with({faults::cut_between(low, high).at({})}), [&](auto& net) {
            rill::elastic team{net, shape, options};
            model state;
            try {
                train(team, net, state, 5);
                CHECK(state.latest[0] == 15);
                ++done;
            } catch (const rill::error& thrown) {
                const std::string said = thrown.what();
                for (const rill::rank_t end : {low, high})
                    CHECK_MESSAGE(said.find("rank " + std::to_string(end)) != std::string::npos, said);
            }
            CHECK(team.view().members.size() == 5);
        });
        return done;
    };
    for (rill::rank_t low = 0; low < 5; ++low)
        for (rill::rank_t high = low + 1; high < 5; ++high) {
            CAPTURE(low);
            CAPTURE(high);
            CHECK(done_over(rill::topology::backup_tree{2}, low, high) == 5);
            const bool are_neighbours = high - low == 1 || high - low == 4;
            const bool meet_in_handshake = low == 0 && high == 3;
            CHECK(done_over(rill::topology::ring{}, low, high) == (are_neighbours || meet_in_handshake ? 0 : 5));
        }
}

TEST_CASE("where no rank reaches all others, there is no first view, and each names whom it does not reach") {
    sim::run(4, with({faults::cut_between(0, 1).at({}), faults::cut_between(2, 3).at({})}), [](auto& net) {
        try {
            rill::elastic team{net, rill::topology::ring{}, options};
            FAIL("there is a view");
        } catch (const rill::timeout& thrown) {
            const rill::rank_t other = net.rank() ^ 1;
            CHECK(thrown.what() == "rill: elastic: rank " + std::to_string(other) +
                                       " has not agreed on the first view within 20.000000 s");
            CHECK(thrown.culprit() == other);
        }
    });
}

TEST_CASE("a rank takes a free seat while the others train") {
    sim::network net_of_all = with({faults::start(3).at(rill::milliseconds(10))});
    net_of_all.seats = 4;
    sim::run(3, net_of_all, [&](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, options};
        model state;
        train(team, net, state, 100);
        CHECK(team.view().members.size() == 4);
        CHECK(state.steps == 100);
        CHECK(state.latest[0] == 10);
    });
}

TEST_CASE("without a quorum nothing is committed, and the error names who is missing") {
    for (const auto policy : {rill::quorum::majority, rill::quorum::refused}) {
        sim::run(4, with({faults::kill(0).at(rill::microseconds(4200)), faults::kill(1).at(rill::microseconds(4200))}),
                 [&](auto& net) {
                     rill::elastic_options chosen = options;
                     chosen.quorum = policy;
                     rill::elastic team{net, rill::topology::ring{}, chosen};
                     model state;
                     std::string said;
                     try {
                         train(team, net, state, 10);
                     } catch (const rill::no_quorum& thrown) {
                         said = thrown.what();
                     }
                     if (policy == rill::quorum::refused) {
                         CHECK(said == "");
                         CHECK(team.view().members == std::vector<rill::rank_t>{2, 3});
                         return;
                     }
                     CHECK(said == "rill: elastic: rank " + std::to_string(net.rank()) +
                                       " finds no quorum of epoch 0 of ranks 0-3: ranks 0, 1 are missing");
                     CHECK(state.steps < 10);
                 });
    }
}

TEST_CASE("who was cut off and excluded learns it when it is reached again") {
    std::vector<rill::fault> plan;
    for (const rill::rank_t rank : {0, 1}) {
        plan.push_back(faults::cut_between(rank, 2).at(rill::microseconds(4200)));
        plan.push_back(faults::heal_between(rank, 2).at(rill::seconds(40)));
    }
    int excluded = 0, without = 0;
    sim::run(3, with(plan), [&](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, {.timeout = rill::seconds(5), .patience = rill::seconds(3)}};
        model state;
        while (net.now().ns < rill::seconds(60).ns) {
            try {
                team.settle(state);
                std::vector<double> mine(20, 1.0), sum(20);
                if (team.attempt([&](auto& workers) { rill::all_reduce(workers, mine, sum); })) state.add(sum);
                net.sleep_until(net.now() + rill::milliseconds(500));
            } catch (const rill::no_quorum&) {
                ++without;
                CHECK(net.rank() == 2);
            } catch (const rill::excluded&) {
                ++excluded;
                CHECK(net.rank() == 2);
                return;
            }
        }
        CHECK(team.view().members == std::vector<rill::rank_t>{0, 1});
        team.finish();
    });
    CHECK(excluded == 1);
    CHECK(without > 0);
}

TEST_CASE("below the least number of members a team waits, and then says so") {
    sim::run(3, with({faults::kill(2).at(rill::microseconds(4200))}), [](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, {.least = 3, .timeout = rill::seconds(2)}};
        model state;
        std::string said;
        rill::rank_t culprit = rill::no_rank;
        try {
            train(team, net, state, 10);
        } catch (const rill::no_quorum& thrown) {
            said = thrown.what();
            culprit = thrown.culprit();
        }
        CHECK(said ==
              "rill: elastic: epoch 1 of ranks 0-1 has 2 members, and at least 3 are wanted: rank 2 is missing");
        CHECK(culprit == 2);
    });
}

TEST_CASE("a first view of fewer members than the least commits no step") {
    sim::run(2, with({}), [](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, {.least = 3, .timeout = rill::seconds(2)}};
        CHECK_FALSE(team.attempt([](auto&) { FAIL_CHECK("too few members take a step"); }));
        CHECK(team.step() == 0);
        model state;
        CHECK_THROWS_AS(team.settle(state), rill::no_quorum);
    });
}

TEST_CASE("members that wait for one more give it the state when it comes") {
    int taken_in = 0;
    sim::run(3, with({faults::kill(2).at(rill::microseconds(4200)), faults::restart(2).at(rill::seconds(3))}),
             [&](auto& net) {
                 rill::elastic team{net, rill::topology::ring{}, {.least = 3, .timeout = rill::seconds(20)}};
                 model state;
                 train(team, net, state, 10);
                 CHECK(team.view().members.size() == 3);
                 CHECK(state.steps == 10);
                 CHECK(state.latest[0] == 6);
                 taken_in += net.restarts();
             });
    CHECK(taken_in == 1);
}

TEST_CASE("ranks that wait for one of the first view greet at intervals") {
    constexpr int ranks = 5, greetings = 40;
    const sim::report all = sim::run(ranks, with({}), [](auto& net) {
        const rill::elastic_options often{.timeout = rill::seconds(20), .repeat = rill::milliseconds(50)};
        if (net.rank() == 4) net.sleep_until(net.now() + often.repeat * greetings);
        rill::elastic team{net, rill::topology::ring{}, often};
        CHECK(team.is_member());
    });
    CHECK(all.messages >= greetings * 4 * 4);
    CHECK(all.messages < 2 * greetings * 4 * 4);
}

TEST_CASE("options of an elastic team are checked before anything uses the transport") {
    const sim::report all = sim::run(2, with({}), [](auto& net) {
        CHECK_THROWS_AS((rill::elastic{net, rill::topology::ring{}, {.timeout = rill::seconds(0)}}),
                        rill::contract_violation);
    });
    CHECK(all.messages == 0);
}
