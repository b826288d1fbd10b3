#include <rill/protocol/local_steps.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

using namespace rill::straggler;
using rill::local_steps;
using rill::partial_all_reduce;
using outcome = rill::push_fate::outcome;

namespace local {

using vector = std::vector<double>;

const rill::train::descent of_a_rank{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.25}};
/// The mean of what the ranks push: averages their models.
const rill::train::descent average{rill::train::sgd{}, rill::train::constant_rate{1}, false};

/// The gradient of a quadratic whose minimum is at the rank's number.
vector slope(const vector& at, rill::rank_t rank) {
    vector gradient = at;
    for (double& each : gradient) each -= rank;
    return gradient;
}

/// All fates that are known. Each push is told once.
std::map<outcome, int> told(auto& replica, std::set<std::uint64_t>& seen) {
    std::map<outcome, int> count;
    while (const auto fate = replica.fate()) {
        CHECK(seen.insert(fate->push).second);
        ++count[fate->what];
    }
    return count;
}

}  // namespace local

using local::average;
using local::of_a_rank;
using local::slope;
using local::told;

TEST_CASE("local_steps: over rounds of all ranks it is local SGD, bit for bit") {
    const auto body = [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        local::vector model{8, -8, 16}, expected = model, given(3), sum(3);
        partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, average, model};
        local_steps replica{rounds, {.every = 4}, of_a_rank, model};
        auto by_hand = of_a_rank.bind<double>(3);
        std::uint64_t step = 0;
        while (const auto held = replica.pull(given)) {
            CHECK(given == expected);
            if (step == 12) break;
            CHECK(held->version == step / 4);
            replica.push(slope(given, net.rank()), *held);
            const local::vector gradient = slope(expected, net.rank());
            by_hand.apply(expected, gradient, 1, step);
            if (++step % 4 != 0) continue;
            rill::all_reduce(workers, expected, sum, rill::aggregate::mean{});
            expected = sum;
        }
        replica.end();
        CHECK(!replica.pull(given));
        CHECK(given == expected);
        std::set<std::uint64_t> seen;
        CHECK(told(replica, seen)[outcome::counted] == 12);
        CHECK(seen.size() == 12);
    };
    for (const int ranks : {1, 2, 4}) {
        rill::simulated::run(ranks, {}, body);
        rill::in_process::run(ranks, body);
    }
}

TEST_CASE("local_steps: steps that end a run are pushed, and steps that others end are told") {
    rill::simulated::run(3, {}, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        local::vector model{0}, given = model;
        partial_all_reduce rounds{workers, majority{}, bounded{8}, plain_sum{}, average, model};
        local_steps replica{rounds, {.every = 10}, of_a_rank, model};
        int steps = 0;
        std::set<std::uint64_t> seen;
        while (const auto held = replica.pull(given)) {
            net.sleep_until(net.now() + rill::milliseconds(1 + net.rank()));
            replica.push(slope(given, 100), *held);
            if (++steps == 13 && net.rank() == 0) replica.end();
        }
        auto fates = told(replica, seen);
        CHECK(static_cast<int>(seen.size()) == steps);
        CHECK(fates[outcome::counted] + fates[outcome::run_over] == steps);
        if (net.rank() == 0) CHECK(fates[outcome::counted] == 13);
        if (net.rank() == 2) CHECK(fates[outcome::run_over] > 0);
    });
}

TEST_CASE("local_steps: a push weighs 1, however many steps it has") {
    const rill::train::descent as_it_is{rill::train::sgd{}, rill::train::constant_rate{1}};
    for (const bool averages : {true, false})
        rill::simulated::run(2, {}, [&](auto& net) {
            rill::group workers{net, rill::topology::ring{}};
            local::vector model{0}, given = model;
            const auto check = [&](const auto& outer, double expected) {
                partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, outer, model};
                local_steps replica{rounds, {.every = 3}, as_it_is, model};
                const int steps = net.rank() == 0 ? 1 : 3;  // of rank 0 `retire` pushes them
                const auto held = replica.pull(given);
                for (int step = 0; step < steps; ++step) replica.push(local::vector{-12}, *held);
                replica.retire();
                CHECK(!replica.pull(given));
                CHECK(given[0] == expected);
                int told = 0;
                while (const auto fate = replica.fate()) {
                    CHECK(fate->weight == 1);
                    CHECK(fate->round == 0);
                    ++told;
                }
                CHECK(told == steps);
                CHECK(rounds.version() >= 1);
            };
            if (averages)
                check(average, (12 * 1 + 12 * 3) / 2.0);  // not (1 * 12 + 3 * 36) / 4.0
            else
                check(as_it_is, 12 * 1 + 12 * 3);
        });
}

TEST_CASE("local_steps: a gradient that is not finite makes no step") {
    rill::simulated::run(2, {}, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        local::vector model{0, 0}, given = model;
        partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, average, model};
        local_steps replica{rounds, {.every = 3}, of_a_rank, model};
        for (int push = 0; push < 4; ++push) {
            const auto held = replica.pull(given);
            REQUIRE(held);
            CHECK(held->version == 0);
            local::vector gradient{-4, -4};
            if (push == 1) gradient[1] = std::numeric_limits<double>::infinity();
            replica.push(gradient, *held);
            const auto fate = replica.fate();
            CHECK(fate.has_value() == (push == 1));
            if (fate) CHECK(*fate == rill::push_fate{.push = 1, .what = outcome::not_finite, .coordinate = 1});
        }
        CHECK(replica.pull(given)->version == 1);
        CHECK(given == local::vector{1 + 1.5 + 1.75, 1 + 1.5 + 1.75});
        replica.end();
        CHECK(!replica.pull(given));
    });
}

TEST_CASE("local_steps: over a parameter server") {
    rill::simulated::run(4, {}, [](auto& net) {
        local::vector model{2}, given = model;
        rill::parameter_server server{net, {.servers = 1}, bounded{0}, average, model};
        local_steps replica{server, {.every = 2}, of_a_rank, model};
        int steps = 0;
        while (const auto held = replica.pull(given)) {
            if (steps == 6) {
                replica.retire();
                continue;
            }
            replica.push(local::vector{4}, *held);
            ++steps;
        }
        // Momentum 0.5, rate 0.25, gradient 4: the steps are 1, 1.5, 1.75, 1.875, 1.9375 and 1.96875.
        if (server.is_server())
            CHECK(given == model);
        else
            CHECK(given == local::vector{2 - 3 * (1 + 1.5 + 1.75 + 1.875 + 1.9375 + 1.96875)});
    });
}

TEST_CASE("local_steps: several pushes at one model count once each") {
    const rill::train::descent as_it_is{rill::train::sgd{}, rill::train::constant_rate{1}};
    for (const std::uint32_t every : {1U, 2U, 3U})
        rill::simulated::run(3, {}, [&](auto& net) {
            local::vector model{100, 50}, given = model;
            rill::parameter_server server{net, {}, bounded{9}, average, model};
            local_steps replica{server, {.every = every}, as_it_is, model};
            std::set<std::uint64_t> seen;
            if (const auto held = replica.pull(given)) {
                for (int push = 0; push < 5; ++push) replica.push(local::vector{1, 2}, *held);
                replica.retire();
                CHECK(!replica.pull(given));
                CHECK(given == local::vector{90, 30});
                CHECK(told(replica, seen)[outcome::counted] == 5);
            }
        });
}

TEST_CASE("local_steps: one step at a time is what the replica does by itself") {
    const rill::train::descent as_it_is{rill::train::sgd{}, rill::train::constant_rate{1}};
    const rill::train::descent outer{rill::train::sgd{.momentum = 0.5}, rill::train::constant_rate{0.25}};
    for (const int ranks : {1, 2, 3, 5})
        rill::simulated::run(ranks, {}, [&](auto& net) {
            rill::group workers{net, rill::topology::ring{}};
            const local::vector model{64, -128};
            local::vector plain = model, given = model;
            partial_all_reduce alone{workers, all_ready{}, in_step{}, plain_sum{}, outer, model};
            partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, outer, model};
            local_steps replica{rounds, {.every = 1}, as_it_is, model};
            for (int step = 0; step < 8; ++step) {
                const auto held = alone.pull(plain);
                CHECK(replica.pull(given) == held);
                CHECK(given == plain);
                local::vector gradient = plain;  // whole numbers: the model less them and back is exact
                for (double& each : gradient) each = double(std::int64_t(each) + 3 * net.rank());
                alone.push(gradient, *held);
                replica.push(gradient, *held);
            }
            for (const bool first : {true, false}) first ? alone.end() : replica.end();
            CHECK(!alone.pull(plain));
            CHECK(!replica.pull(given));
            CHECK(given == plain);
        });
}

namespace local {

/// DiLoCo by hand: an outer Nesterov step along the mean of what `ranks` ranks have moved by `every` steps each.
vector diloco(vector model, int ranks, int every, int rounds) {
    vector velocity(model.size());
    std::vector<vector> momentum(std::size_t(ranks), vector(model.size()));
    for (int round = 0; round < rounds; ++round) {
        vector moved(model.size());
        for (int rank = 0; rank < ranks; ++rank) {
            vector own = model;
            for (int step = 0; step < every; ++step)
                for (std::size_t i = 0; i < own.size(); ++i) {
                    double& v = momentum[std::size_t(rank)][i];
                    v = 0.5 * v + (own[i] - rank);
                    own[i] -= 0.25 * v;
                }
            for (std::size_t i = 0; i < own.size(); ++i) moved[i] += (model[i] - own[i]) / ranks;
        }
        for (std::size_t i = 0; i < model.size(); ++i) {
            velocity[i] = 0.9 * velocity[i] + moved[i];
            model[i] -= 0.7 * (moved[i] + 0.9 * velocity[i]);
        }
    }
    return model;
}

}  // namespace local

TEST_CASE("local_steps: with an outer Nesterov step it is DiLoCo") {
    const rill::train::descent outer{rill::train::sgd{.momentum = 0.9, .nesterov = true},
                                     rill::train::constant_rate{0.7}, false};
    for (const int ranks : {1, 3, 4})
        rill::simulated::run(ranks, {}, [&](auto& net) {
            rill::group workers{net, rill::topology::ring{}};
            const local::vector model{8, -8, 16};
            local::vector given = model;
            partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, outer, model};
            local_steps replica{rounds, {.every = 6}, of_a_rank, model};
            while (const auto held = replica.pull(given)) {
                if (held->version == 5) break;
                replica.push(slope(given, net.rank()), *held);
            }
            const local::vector expected = local::diloco(model, ranks, 6, 5);
            for (std::size_t i = 0; i < given.size(); ++i)
                CHECK(given[i] == doctest::Approx(expected[i]).epsilon(1e-12));
            replica.end();
            CHECK(!replica.pull(given));
        });
}

TEST_CASE("local_steps: over pairs that average their models") {
    const rill::train::descent move{rill::train::sgd{}, rill::train::constant_rate{1}};
    for (const int ranks : {1, 2, 4, 5}) {
        double sum = 0;
        rill::simulated::run(ranks, {}, [&](auto& net) {
            local::vector model{64}, given = model;
            rill::pair_averaging pairs{net, rill::topology::anyone{}, move, model};
            local_steps replica{pairs, {.every = 3}, move, model};
            std::set<std::uint64_t> seen;
            int steps = 0;
            while (const auto held = replica.pull(given)) {
                if (steps == 10) {
                    replica.retire();
                    continue;
                }
                net.sleep_until(net.now() + rill::milliseconds(1 + net.rank()));
                replica.push(local::vector{double(1 + net.rank())}, *held);
                ++steps;
            }
            CHECK(told(replica, seen)[outcome::counted] == 10);
            sum += given[0];
        });
        // All that was pushed is in the sum of the models, which exchanges keep.
        CHECK(sum == doctest::Approx(64.0 * ranks - 10 * ranks * (ranks + 1) / 2).epsilon(1e-12));
    }
}

TEST_CASE("local_steps: a pull that may be called again has told no push as lost") {
    rill::simulated::run(3, {}, [](auto& net) {
        local::vector model{0}, given = model;
        rill::parameter_server server{net, {.timeout = rill::seconds(5)}, bounded{0}, average, model};
        local_steps replica{server, {.every = 2}, of_a_rank, model};
        const rill::time_point begin = net.now();
        std::set<std::uint64_t> seen;
        std::map<outcome, int> fates;
        for (int step = 0; const auto held = replica.pull(given); ++step) {
            if (net.rank() == 1 && step == 0) net.sleep_until(begin + rill::seconds(8));
            for (int push = 0; push < 2; ++push) replica.push(local::vector{1}, *held);
            if (net.rank() == 0 && step == 0) {
                CHECK_THROWS_AS(replica.pull(given), rill::timeout);
                CHECK(told(replica, seen).empty());
            }
            if (step == 2) replica.retire();
        }
        fates = told(replica, seen);
        CHECK(fates[outcome::counted] == (net.rank() == 2 ? 0 : 6));
        CHECK(fates[outcome::run_over] == 0);
    });
}

TEST_CASE("local_steps: what is not allowed is refused before anything is done") {
    rill::simulated::run(1, {}, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        local::vector model{0, 0}, given = model, other{0};
        partial_all_reduce rounds{workers, all_ready{}, in_step{}, plain_sum{}, average, model};
        using rill::contract_violation;
        CHECK_THROWS_AS((local_steps{rounds, {.every = 0}, of_a_rank, model}), contract_violation);
        local_steps replica{rounds, {.every = 2}, of_a_rank, model};
        CHECK_THROWS_AS(replica.push(given, {0}), contract_violation);  // nothing has been pulled
        CHECK_THROWS_AS(replica.pull(other), contract_violation);
        const auto held = replica.pull(given);
        CHECK_THROWS_AS(replica.push(other, *held), contract_violation);
        CHECK_THROWS_AS(replica.push(given, {held->version + 1}), contract_violation);
        replica.end();
        CHECK_THROWS_AS(replica.push(given, *held), contract_violation);
        CHECK(!replica.pull(given));
    });
}
