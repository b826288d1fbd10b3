#include <rill/protocol/pair_averaging.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

using rill::milliseconds;
using rill::pair_averaging;
using rill::topology::anyone;
using rill::topology::bipartite;
using outcome = rill::push_fate::outcome;

namespace pairs {

using vector = std::vector<double>;

/// The model moves by -1 for each unit of the gradient.
const rill::train::descent plain{rill::train::sgd{}, rill::train::constant_rate{1}};

/// What one rank saw of a run.
struct account {
    std::uint64_t pushes = 0;
    std::set<std::uint64_t> told;
    std::map<outcome, std::uint64_t> fates;
    vector model;

    void take(auto& replica) {
        while (const auto fate = replica.fate()) {
            CHECK(told.insert(fate->push).second);
            ++fates[fate->what];
        }
    }
};

/// Pushes `count` gradients of -(1 + rank) at all coordinates, a while apart, and retires.
template <class Net, class Who>
account push_some(Net& net, Who who, std::uint64_t count, std::size_t size = 3) {
    account seen;
    seen.model.resize(size);
    pair_averaging replica{net, who, plain, seen.model, {.timeout = rill::seconds(10)}};
    const vector gradient(size, -1.0 - net.rank());
    while (const auto held = replica.pull(seen.model)) {
        seen.take(replica);
        if (seen.pushes == count) {
            replica.retire();
            continue;
        }
        net.sleep_until(net.now() + rill::microseconds(100 + 70 * net.rank()));
        replica.push(gradient, *held);
        ++seen.pushes;
    }
    seen.take(replica);
    CHECK(seen.model == vector(replica.newest().begin(), replica.newest().end()));
    return seen;
}

template <class Who>
std::vector<account> run_all(int ranks, Who who, std::uint64_t count, const rill::simulated::network& network = {}) {
    std::vector<account> all(static_cast<std::size_t>(ranks));
    rill::simulated::run(ranks, network,
                         [&](auto& net) { all[static_cast<std::size_t>(net.rank())] = push_some(net, who, count); });
    return all;
}

double sum_of(const std::vector<account>& all) {
    double sum = 0;
    for (const account& each : all) sum += each.model[0];
    return sum;
}

}  // namespace pairs

using pairs::plain;

TEST_CASE("pair_averaging: the sum of the models is the first one and all that was pushed") {
    for (const int ranks : {1, 2, 3, 4, 7, 16}) {
        const auto check = [&](const auto& all) {
            double pushed = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const auto& own = all[static_cast<std::size_t>(rank)];
                CHECK(own.pushes == 6);
                CHECK(own.told.size() == 6);
                CHECK(own.fates.at(outcome::counted) == 6);
                pushed += 6 * (1.0 + rank);
            }
            CHECK(pairs::sum_of(all) == pushed);  // whole numbers, halved at most 48 times in all: exact
        };
        check(pairs::run_all(ranks, bipartite{}, 6));
        if (ranks < 5) check(pairs::run_all(ranks, anyone{}, 6));
    }
}

TEST_CASE("pair_averaging: between threads") {
    for (const int ranks : {2, 5}) {
        std::vector<pairs::account> all(static_cast<std::size_t>(ranks));
        rill::in_process::run(
            ranks, [&](auto& net) { all[static_cast<std::size_t>(net.rank())] = pairs::push_some(net, anyone{}, 50); });
        double pushed = 0;
        for (int rank = 0; rank < ranks; ++rank) pushed += 50 * (1.0 + rank);
        CHECK(std::abs(pairs::sum_of(all) - pushed) < 1e-9);
    }
}

TEST_CASE("pair_averaging: exchanges bring the models together") {
    const auto spread_of = [](auto who) {
        std::vector<double> reached(8);
        rill::simulated::run(8, {}, [&](auto& net) {
            pairs::vector model(1), gradient(1);
            pair_averaging replica{net, who, plain, model};
            int step = 0;
            while (const auto held = replica.pull(model)) {
                if (++step > 200) {
                    replica.retire();
                    continue;
                }
                gradient[0] = step == 1 ? -100.0 * net.rank() : 0.0;
                net.sleep_until(net.now() + rill::microseconds(100 + 13 * net.rank()));
                replica.push(gradient, *held);
            }
            reached[static_cast<std::size_t>(net.rank())] = model[0];
        });
        double most = 0;
        for (const double each : reached) most = std::max(most, std::abs(each - 350));
        return most;
    };
    CHECK(spread_of(bipartite{}) < 1e-3);
    CHECK(spread_of(anyone{}) < 1e-3);
}

TEST_CASE("pair_averaging: one rank's end ends the run on all ranks") {
    std::vector<pairs::account> all(5);
    rill::simulated::run(5, {}, [&](auto& net) {
        auto& own = all[static_cast<std::size_t>(net.rank())];
        own.model.resize(1);
        pair_averaging replica{net, bipartite{}, plain, own.model};
        while (const auto held = replica.pull(own.model)) {
            net.sleep_until(net.now() + milliseconds(1 + net.rank()));
            replica.push(pairs::vector{-1}, *held);
            if (++own.pushes == 20 && net.rank() == 3) replica.end();
        }
        own.take(replica);
        CHECK(own.told.size() == own.pushes);
        CHECK(own.fates[outcome::counted] + own.fates[outcome::run_over] == own.pushes);
        CHECK(!replica.pull(own.model));
    });
    double counted = 0;
    for (auto& each : all) counted += static_cast<double>(each.fates[outcome::counted]);
    CHECK(pairs::sum_of(all) == doctest::Approx(counted));
    CHECK(all[3].pushes == 20);
}

TEST_CASE("pair_averaging: a retired rank is not waited for, and serves on") {
    std::vector<pairs::account> all(3);
    rill::simulated::run(3, {}, [&](auto& net) {
        all[static_cast<std::size_t>(net.rank())] = pairs::push_some(net, anyone{}, net.rank() == 0 ? 0 : 9);
    });
    CHECK(all[0].pushes == 0);
    CHECK(all[0].model[0] != 0);
    CHECK(pairs::sum_of(all) == doctest::Approx(9 * (2 + 3)));
}

TEST_CASE("pair_averaging: a gradient that is not finite moves nothing, and its rank goes on") {
    rill::simulated::run(2, {}, [](auto& net) {
        pairs::vector model(2);
        pair_averaging replica{net, bipartite{}, plain, model};
        for (int push = 0; push < 3; ++push) {
            const auto held = replica.pull(model);
            REQUIRE(held);
            pairs::vector gradient{0, 0};
            if (push == 1) gradient[1] = std::numeric_limits<double>::quiet_NaN();
            replica.push(gradient, *held);
        }
        replica.retire();
        CHECK(!replica.pull(model));
        CHECK(model == pairs::vector{0, 0});
        for (std::uint64_t push = 0; push < 3; ++push) {
            const auto fate = replica.fate();
            REQUIRE(fate);
            CHECK(fate->push == push);
            CHECK(fate->what == (push == 1 ? outcome::not_finite : outcome::counted));
            CHECK(fate->weight == (push == 1 ? 0 : 1));
            if (push == 1) CHECK(fate->coordinate == 1);
        }
        CHECK(!replica.fate());
    });
}

TEST_CASE("pair_averaging: what is not allowed is refused before anything is done") {
    rill::simulated::run(1, {}, [](auto& net) {
        using rill::contract_violation;
        pairs::vector model(2), other(3);
        pair_averaging replica{net, anyone{}, plain, model};
        CHECK_THROWS_AS(replica.pull(other), contract_violation);
        const auto held = replica.pull(model);
        CHECK_THROWS_AS(replica.push(other, *held), contract_violation);
        CHECK_THROWS_AS(replica.push(model, {held->version + 1}), contract_violation);
        CHECK_THROWS_AS(replica.newest(), contract_violation);
        replica.retire();
        CHECK_THROWS_AS(replica.push(model, *held), contract_violation);
        CHECK(!replica.pull(model));
    });
}

TEST_CASE("pair_averaging: another first model on one rank is a mismatch on all ranks") {
    rill::simulated::run(4, {}, [](auto& net) {
        const pairs::vector model(2, net.rank() == 2 ? 1.0 : 0.0);
        try {
            pair_averaging replica{net, bipartite{}, plain, model};
            FAIL("no mismatch");
        } catch (const rill::mismatch& thrown) {
            CHECK(thrown.culprit() == 2);
            CHECK(std::string(thrown.what()).find("first model") != std::string::npos);
        }
    });
}

TEST_CASE("pair_averaging: the others go on without a rank that has died or was destroyed early") {
    using rill::faults::kill;
    for (const rill::rank_t victim : {0, 1, 4})
        for (const bool is_killed : {true, false}) {
            std::vector<pairs::account> all(5);
            rill::simulated::network network;
            if (is_killed) network.faults.faults.push_back(kill(victim).at(milliseconds(3)));
            rill::simulated::run(5, network, [&](auto& net) {
                const auto rank = static_cast<std::size_t>(net.rank());
                if (is_killed || net.rank() != victim) {
                    all[rank] = pairs::push_some(net, anyone{}, 100);
                    return;
                }
                pairs::vector model(3);
                pair_averaging replica{net, anyone{}, plain, model, {.timeout = rill::seconds(10)}};
                for (int push = 0; push < 5; ++push) replica.push(model, *replica.pull(model));
            });
            for (std::size_t rank = 0; rank < 5; ++rank)
                if (static_cast<rill::rank_t>(rank) != victim) CHECK(all[rank].fates[outcome::counted] == 100);
        }
}

TEST_CASE("pair_averaging: an exchange is two messages of the model and their headers") {
    constexpr std::size_t size = 1000;
    const auto report = rill::simulated::run(2, {}, [](auto& net) { pairs::push_some(net, bipartite{}, 40, size); });
    std::uint64_t bytes = 0;
    for (const auto& link : report.links)
        if (link.source != link.receiver) bytes += link.bytes;
    const std::uint64_t models = 40 * 2 * size * sizeof(double);
    CHECK(bytes > models);
    CHECK(bytes < models + models / 50);
}
