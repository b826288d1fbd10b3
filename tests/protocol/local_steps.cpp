#include <rill/protocol/local_steps.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
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
