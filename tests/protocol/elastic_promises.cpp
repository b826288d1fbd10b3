// What docs/elastic.md promises, where callers are unlucky or careless.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/simulated.hpp>

#include "elastic_scene.hpp"

#include <doctest/doctest.h>

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

constexpr rill::elastic_options options{.timeout = rill::seconds(5), .patience = rill::seconds(3)};

sim::network with(std::vector<rill::fault> planned) {
    return {.faults = {std::move(planned)}, .silence = rill::seconds(1), .longest = rill::seconds(1000)};
}

constexpr std::int64_t first_cut = 3000, last_cut = 4600;  // in microseconds: two steps

}  // namespace

TEST_CASE("without a quorum codecs are as before, and after it a committed step is in the state of all") {
    int refused = 0;
    for (std::int64_t cut = first_cut; cut < last_cut; cut += 40) {
        CAPTURE(cut);
        std::vector<rill::fault> plan;
        for (rill::rank_t low = 0; low < 3; ++low)
            for (rill::rank_t high = low + 1; high < 3; ++high) {
                plan.push_back(faults::cut_between(low, high).at(rill::microseconds(cut)));
                plan.push_back(faults::heal_between(low, high).at(rill::seconds(40)));
            }
        std::vector<model> ends(3);
        sim::run(3, with(plan), [&](auto& net) {
            rill::elastic team{net, rill::topology::ring{}, options};
            model state;
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.3}}.bind(20);
            while (team.step() < 6) {
                std::vector<double> own(20, net.rank() + 1.0), sum(20);
                std::vector<float> gradient(20), mean(20);
                for (std::size_t i = 0; i < 20; ++i)
                    gradient[i] = static_cast<float>(i) * static_cast<float>(net.rank() + 1);
                const std::vector<float> before(codec.residual().begin(), codec.residual().end());
                bool is_done = false;
                try {
                    team.settle(state);
                    CHECK(state.steps == static_cast<double>(team.step()));
                    if (team.step() >= 6) break;
                    net.sleep_until(net.now() + rill::milliseconds(1));
                    is_done = team.attempt([&](auto& workers) {
                        rill::all_reduce(workers, gradient, mean, codec);
                        rill::all_reduce(workers, own, sum);
                    });
                } catch (const rill::no_quorum&) {
                    ++refused;
                    net.sleep_until(net.now() + rill::milliseconds(500));
                }
                if (is_done)
                    state.add(sum);
                else
                    CHECK(std::vector<float>(codec.residual().begin(), codec.residual().end()) == before);
            }
            team.finish();
            CHECK(state.latest[0] == 6);
            ends[static_cast<std::size_t>(net.rank())] = state;
        });
        CHECK(ends[1] == ends[0]);
        CHECK(ends[2] == ends[0]);
    }
    CHECK(refused > 0);
}

TEST_CASE("a body that keeps to itself that a collective has failed has no result to commit") {
    int repeated = 0;
    for (std::int64_t killed = first_cut; killed < last_cut; killed += 40) {
        CAPTURE(killed);
        sim::run(3, with({faults::kill(2).at(rill::microseconds(killed))}), [&](auto& net) {
            rill::elastic team{net, rill::topology::ring{}, options};
            model state;
            while (team.step() < 6) {
                const std::size_t members = team.settle(state).members.size();
                if (team.step() >= 6) break;
                net.sleep_until(net.now() + rill::milliseconds(1));
                std::vector<double> own(20, net.rank() + 1.0), sum(20);
                const bool is_done = team.attempt([&](auto& workers) {
                    try {
                        rill::all_reduce(workers, own, sum);
                    } catch (const rill::error&) {
                        ++repeated;
                    }
                });
                if (!is_done) continue;
                CHECK(sum[0] == (members == 3 ? 6 : 3));
                state.add(sum);
            }
            team.finish();
        });
    }
    CHECK(repeated > 0);
}

TEST_CASE(
    "a body that makes a call more on one member ends the step on all, and is not taken for the end of the step") {
    sim::run(4, with({}), [&](auto& net) {
        rill::elastic team{net, rill::topology::ring{}, options};
        model state;
        std::string why;
        for (int attempts = 0; team.step() < 2; ++attempts) {
            team.settle(state);
            std::vector<double> own(20, 1.0), sum(20);
            try {
                const bool is_done = team.attempt([&](auto& workers) {
                    rill::all_reduce(workers, own, sum);
                    if (attempts == 1 && net.rank() == 3) rill::barrier(workers);
                });
                if (is_done) state.add(sum);
            } catch (const rill::mismatch& thrown) {
                CHECK(team.step() == 1);
                why = thrown.what();
            }
        }
        team.finish();
        const std::string told = "rank 3 calls barrier where others call all_reduce";
        CHECK_MESSAGE(why.find(told) != std::string::npos, why);
        CHECK(state.steps == 2);
    });
}

TEST_CASE("a rank of the first view that has other options is told so, and the others are") {
    using rill::quorum;
    for (const rill::elastic_options& odd :
         {rill::elastic_options{.least = 2}, rill::elastic_options{.quorum = quorum::reachable},
          rill::elastic_options{.patience = rill::seconds(1)}, rill::elastic_options{.build = 1}})
        sim::run(3, with({}), [&](auto& net) {
            std::string why;
            try {
                rill::elastic team{net, rill::topology::ring{}, net.rank() == 1 ? odd : rill::elastic_options{}};
            } catch (const rill::mismatch& thrown) {
                why = thrown.what();
            }
            CHECK(why.find("rank 1") != std::string::npos);
            CHECK(why.find("other options") != std::string::npos);
            if (net.rank() == 0)
                CHECK(why == "rill: elastic: rank 1 has another topology or other options than rank 0");
        });
}

TEST_CASE("a newcomer with other options gets no state, and the others train on") {
    sim::run(3, with({faults::kill(1).at(rill::microseconds(4200)), faults::restart(1).at(rill::milliseconds(5))}),
             [](auto& net) {
                 rill::elastic_options chosen = options;
                 if (net.restarts() > 0) chosen.seed = 7;
                 model state;
                 std::string why;
                 try {
                     rill::elastic team{net, rill::topology::ring{}, chosen};
                     while (team.step() < 60) {
                         team.settle(state);
                         net.sleep_until(net.now() + rill::milliseconds(1));
                         std::vector<double> own(20, net.rank() + 1.0), sum(20);
                         if (team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) state.add(sum);
                     }
                     team.finish();
                 } catch (const rill::peer_failure& thrown) {
                     why = thrown.what();
                 }
                 CHECK((why.find("rank 1 gets no state") != std::string::npos) == (net.restarts() > 0));
                 CHECK(state.steps == (net.restarts() > 0 ? 0 : 60));
             });
}

TEST_CASE("a newcomer that gets the state more slowly than the members change it is told that it lacks the state") {
    struct wide_model : model {
        rill::buffer pack() const { return rill::buffer(400'000, std::byte{}); }
        rill::buffer changes() const { return rill::buffer(100'000, std::byte{}); }
    };
    sim::network slow = with({faults::start(2).at(rill::milliseconds(10))});
    slow.seats = 3;
    slow.bandwidth = 10e6;  // the state takes 40 ms
    std::string why;
    sim::run(2, slow, [&](auto& net) {
        wide_model state;
        rill::elastic team{
            net, rill::topology::ring{}, {.timeout = rill::milliseconds(500), .catch_up_bytes = 300'000}};
        try {
            while (team.step() < 400) {
                team.settle(state);
                net.sleep_until(net.now() + rill::milliseconds(1));
                std::vector<double> own(20, 1.0), sum(20);
                if (team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) state.add(sum);
            }
            team.finish();
        } catch (const rill::timeout& thrown) {
            CHECK(net.rank() == 2);
            why = thrown.what();
        }
    });
    CHECK(why == "rill: elastic: rank 2 has not got the state of the others within 0.500000 s");
}

TEST_CASE("a rank that comes when all steps are done has the state, or an error") {
    int late = 0;
    sim::run(3, with({faults::kill(1).at(rill::microseconds(4200)), faults::restart(1).at(rill::milliseconds(100))}),
             [&](auto& net) {
                 model state;
                 bool has_failed = false;
                 try {
                     rill::elastic team{net, rill::topology::ring{}, options};
                     CHECK(team.step() == 0);
                     while (team.step() < 10) {
                         team.settle(state);
                         net.sleep_until(net.now() + rill::milliseconds(1));
                         std::vector<double> own(20, net.rank() + 1.0), sum(20);
                         if (team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) state.add(sum);
                     }
                     if (net.rank() == 2) net.sleep_until(net.now() + rill::seconds(1));  // before it finishes
                     team.finish();
                 } catch (const rill::error&) {
                     has_failed = true;
                 }
                 late += net.restarts();
                 CHECK((has_failed || state.steps == 10));
                 CHECK((!has_failed || net.restarts() > 0));
             });
    CHECK(late == 1);
}

TEST_CASE(
    "a member that has missed a decision hears of it from a newcomer, though all members that it knows are dead") {
    constexpr rank_t newcomer = 0, behind = 3;
    int missed = 0;
    for (std::int64_t cut = 14'000; cut < 18'000; cut += 50) {  // the newcomer is taken in after 16.4 ms
        CAPTURE(cut);
        std::vector<rill::time_point> entered(4);  // when it knows that the newcomer is a member
        std::string said;
        std::vector<model> ends(4);
        sim::network on = with(
            {faults::kill(newcomer).at(rill::milliseconds(3)), faults::restart(newcomer).at(rill::milliseconds(10)),
             faults::cut(1, behind).at(rill::microseconds(cut)), faults::kill(1).at(rill::microseconds(cut + 400)),
             faults::kill(2).at(rill::microseconds(cut + 400)),
             faults::heal(1, behind).at(rill::microseconds(cut + 800))});
        on.latency = rill::microseconds(100);
        sim::run(4, on, [&](auto& net) {
            model state;
            rill::time_point& knows = entered[static_cast<std::size_t>(net.rank())];
            try {
                rill::elastic team{net, rill::topology::ring{}, options};
                while (team.step() < 30) {
                    const rill::view& crew = team.settle(state);
                    if (crew.epoch > 1 && crew.contains(newcomer) && knows == rill::time_point{}) knows = net.now();
                    if (team.step() >= 30) break;
                    net.sleep_until(net.now() + rill::milliseconds(1));
                    std::vector<double> own(20, net.rank() + 1.0), sum(20);
                    if (team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) state.add(sum);
                }
                team.finish();
            } catch (const rill::error& thrown) {
                said += thrown.what();
            }
            ends[static_cast<std::size_t>(net.rank())] = state;
        });
        if (entered[newcomer] == rill::time_point{}) continue;  // then one of three is left, which is no quorum
        missed += entered[behind] - entered[newcomer] > rill::milliseconds(1) ? 1 : 0;
        CHECK_MESSAGE(said == "", said);
        CHECK(ends[newcomer] == ends[behind]);
        CHECK(ends[behind].steps == 30);
    }
    CHECK(missed > 0);
}

TEST_CASE("a member waits until it has been told that a newcomer has arrived, though others have taken it in") {
    for (int delay = 0; delay < 20; ++delay) {
        CAPTURE(delay);
        sim::network on =
            with({faults::kill(4).at(rill::milliseconds(5)), faults::restart(4).at(rill::milliseconds(20)),
                  faults::delay_up_to(rill::milliseconds(2 * delay)).on(4, 3).at(rill::milliseconds(19))});
        on.latency = rill::microseconds(50);
        on.faults.seed = static_cast<std::uint64_t>(delay);
        sim::run(5, on, [](auto& net) {
            rill::elastic team{net, rill::topology::ring{}, options};
            model state;
            while (team.step() < 60) {
                team.settle(state);
                if (team.step() >= 60) break;
                net.sleep_until(net.now() + rill::milliseconds(1));
                std::vector<double> own(20, net.rank() + 1.0), sum(20);
                if (team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) state.add(sum);
            }
            team.finish();
            CHECK(team.view().members.size() == 5);
        });
    }
}

TEST_CASE("where no majority is wanted, deaths during an agreement are not waited for") {
    for (rill::rank_t last = 0; last < 4; ++last)
        for (std::int64_t apart = 0; apart < 1200; apart += 100) {
            CAPTURE(last);
            CAPTURE(apart);
            std::vector<rill::fault> plan;
            for (rill::rank_t rank = 0; rank < 4; ++rank)
                if (rank != last)
                    plan.push_back(faults::kill(rank).at(
                        rill::microseconds(first_cut + apart * static_cast<std::int64_t>(plan.size()))));
            sim::run(4, with(plan), [](auto& net) {
                rill::elastic_options chosen = options;
                chosen.quorum = rill::quorum::refused;
                rill::elastic team{net, rill::topology::ring{}, chosen};
                model state;
                while (team.step() < 10) {
                    team.settle(state);
                    net.sleep_until(net.now() + rill::milliseconds(1));
                    std::vector<double> own(20, net.rank() + 1.0), sum(20);
                    if (team.attempt([&](auto& workers) { rill::all_reduce(workers, own, sum); })) state.add(sum);
                }
                CHECK(net.now().ns < rill::milliseconds(100).ns);
                CHECK(team.view().members.size() == 1);
            });
        }
}
