#include <rill/protocol/pair_averaging.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/core/error.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
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
    std::uint64_t version = 0;

    void take(auto& replica) {
        while (const auto fate = replica.fate()) {
            CHECK(told.insert(fate->push).second);
            ++fates[fate->what];
        }
    }
};

/// Pushes `count` gradients of -(1 + rank) at all coordinates, a while apart, and retires.
template <class Net, class Who>
account push_some(Net& net, Who who, std::uint64_t count, std::size_t size = 3,
                  rill::duration timeout = rill::seconds(10)) {
    account seen;
    seen.model.resize(size);
    pair_averaging replica{net, who, plain, seen.model, {.timeout = timeout}};
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
    seen.version = replica.version();
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

TEST_CASE("pair_averaging: the sum of the models stays where many ranks meet") {
    for (const int ranks : {5, 9, 16}) {
        const auto all = pairs::run_all(ranks, anyone{}, 40);
        double pushed = 0;
        for (int rank = 0; rank < ranks; ++rank) pushed += 40 * (1.0 + rank);
        CHECK(std::abs(pairs::sum_of(all) - pushed) < 1e-9);
    }
}

TEST_CASE("pair_averaging: one rank alone has nobody to ask") {
    for (const auto& all : {pairs::run_all(1, bipartite{}, 7), pairs::run_all(1, anyone{}, 7)}) {
        CHECK(all[0].model == pairs::vector(3, 7));
        CHECK(all[0].version == 7);
    }
}

TEST_CASE("pair_averaging: between threads") {
    const auto check = [](int ranks, auto who) {
        std::vector<pairs::account> all(static_cast<std::size_t>(ranks));
        rill::in_process::run(
            ranks, [&](auto& net) { all[static_cast<std::size_t>(net.rank())] = pairs::push_some(net, who, 50); });
        double pushed = 0;
        for (int rank = 0; rank < ranks; ++rank) pushed += 50 * (1.0 + rank);
        CHECK(std::abs(pairs::sum_of(all) - pushed) < 1e-9);
    };
    for (const int ranks : {2, 5}) {
        check(ranks, anyone{});
        check(ranks, bipartite{});
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

TEST_CASE("pair_averaging: a retired rank is not waited for, and is drawn no more") {
    constexpr std::size_t size = 1000;
    for (const int ranks : {3, 6}) {
        std::vector<pairs::account> all(static_cast<std::size_t>(ranks));
        const auto report = rill::simulated::run(ranks, {}, [&](auto& net) {
            if (net.rank() != 0) net.sleep_until(net.now() + milliseconds(1));
            all[static_cast<std::size_t>(net.rank())] = pairs::push_some(net, anyone{}, net.rank() == 0 ? 0 : 30, size);
        });
        double pushed = 0;
        for (int rank = 1; rank < ranks; ++rank) pushed += 30 * (1.0 + rank);
        CHECK(all[0].model == pairs::vector(size));  // it keeps what it had
        CHECK(std::abs(pairs::sum_of(all) - pushed) < 1e-9);
        for (const auto& link : report.links)
            if (link.receiver == 0 && link.source != 0) CHECK(link.bytes < size * sizeof(double));
    }
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

TEST_CASE("pair_averaging: a model that is not finite is named before others average with it") {
    const auto one = [](auto& net, auto who) {
        pairs::vector model(3), gradient(3);
        pair_averaging replica{net, who, pairs::plain, model, {.timeout = rill::seconds(10)}};
        if (net.rank() == 2) gradient[1] = -1e308;  // the second one is too much
        std::string said;
        try {
            for (int pushes = 0; const auto held = replica.pull(model);) {
                net.sleep_until(net.now() + rill::microseconds(100));
                for (const double value : model) CHECK((net.rank() == 2 || std::isfinite(value)));
                if (net.rank() == 2 && ++pushes > 30)
                    replica.end();
                else
                    replica.push(gradient, *held);
            }
        } catch (const rill::error& thrown) {
            said = thrown.what();
            CHECK(thrown.culprit() == 2);
        }
        CHECK_MESSAGE(said.find("rank 2 has a model that is not finite at coordinate 1") != std::string::npos, said);
    };
    rill::simulated::run(4, {.latency = rill::microseconds(10)}, [&](auto& net) { one(net, anyone{}); });
    rill::simulated::run(4, {.latency = rill::microseconds(10)}, [&](auto& net) { one(net, bipartite{}); });
    rill::in_process::run(4, [&](auto& net) { one(net, anyone{}); });
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
                if (victim == 4) return;  // before its first pull
                for (int push = 0; push < 5; ++push) replica.push(model, *replica.pull(model));
            });
            for (std::size_t rank = 0; rank < 5; ++rank)
                if (static_cast<rill::rank_t>(rank) != victim) CHECK(all[rank].fates[outcome::counted] == 100);
        }
}

namespace pairs {

/// How a rank has failed, if it has.
struct ending {
    account seen;
    rill::rank_t culprit = rill::no_rank, other = rill::no_rank;
    rill::duration time{};

    bool has_failed() const { return culprit != rill::no_rank; }
    bool names(rill::rank_t rank) const { return culprit == rank || other == rank; }
};

constexpr rill::duration timeout = rill::seconds(1);

template <class Who = anyone>
std::vector<ending> run_with(const std::vector<rill::fault>& faults, int ranks, Who who = {}) {
    std::vector<ending> all(static_cast<std::size_t>(ranks));
    rill::simulated::network network;
    network.faults.faults = faults;
    rill::simulated::run(ranks, network, [&](auto& net) {
        ending& own = all[static_cast<std::size_t>(net.rank())];
        try {
            own.seen = push_some(net, who, 100, 3, timeout);
        } catch (const rill::timeout& thrown) {
            own.culprit = thrown.culprit();
            own.other = thrown.notice().other;
        }
        own.time = net.now() - rill::time_point{};
    });
    return all;
}

}  // namespace pairs

TEST_CASE("pair_averaging: a silent rank costs one timeout, and learns that it is cut off") {
    using namespace rill::faults;
    using rill::any_rank;
    const auto check = [](auto who, const rill::fault& silence, rill::rank_t victim) {
        const auto all = pairs::run_with({silence.at(milliseconds(3))}, 5, who);
        for (rill::rank_t rank = 0; rank < 5; ++rank) {
            const auto& own = all[static_cast<std::size_t>(rank)];
            CAPTURE(rank);
            CHECK(own.has_failed() == (rank == victim));
            if (rank == victim)
                CHECK(own.names(victim));
            else
                CHECK(own.seen.fates.at(outcome::counted) == 100);
            // The victim waits for one rank after the other, until it has lost half of them. So does each of these for
            // it, where it still can ask them.
            const bool asks_on = silence.from == any_rank;
            CHECK(own.time < pairs::timeout * (rank == victim || asks_on ? 3 : 1) + milliseconds(200));
        }
    };
    for (const rill::rank_t victim : {0, 1, 4})
        for (const auto& silence : {cut_between(victim, any_rank), cut(victim, any_rank), cut(any_rank, victim)}) {
            CAPTURE(victim);
            CAPTURE(silence.both_ways);
            CAPTURE(silence.from);
            check(anyone{}, silence, victim);
            check(bipartite{}, silence, victim);
        }
}

namespace {

struct unmonitored : rill::delayed<rill::simulated::endpoint> {
    using rill::delayed<rill::simulated::endpoint>::delayed;
    void monitor(rill::channel) = delete;
};
static_assert(rill::ConcurrentTransport<unmonitored> && !rill::MonitoredTransport<unmonitored>);

}  // namespace

TEST_CASE("pair_averaging: a dead rank costs one timeout where the transport does not tell of it") {
    for (const rill::rank_t victim : {0, 1, 4}) {
        rill::simulated::network network;
        network.faults.faults.push_back(rill::faults::kill(victim).at(milliseconds(3)));
        int ended = 0;
        rill::simulated::run(5, network, [&](auto& inner) {
            unmonitored net{inner};
            const auto own = pairs::push_some(net, anyone{}, 100, 3, pairs::timeout);
            CHECK(own.fates.at(outcome::counted) == 100);
            CHECK(net.now() - rill::time_point{} < pairs::timeout + milliseconds(200));
            ++ended;
        });
        CHECK(ended == 4);
    }
}

TEST_CASE("pair_averaging: where the link between two ranks is cut, both go on with the others") {
    for (const auto& cut : {rill::faults::cut_between(1, 2), rill::faults::cut(0, 3), rill::faults::cut(3, 0)})
        for (const int milli : {3, 8})
            for (const auto& own : pairs::run_with({cut.at(milliseconds(milli))}, 4)) {
                CHECK(!own.has_failed());
                CHECK(own.seen.fates.at(outcome::counted) == 100);
            }
}

TEST_CASE("pair_averaging: a rank whose only partner is out of reach goes on alone, where it reaches most ranks") {
    for (const auto& own : pairs::run_with({rill::faults::cut_between(0, 1).at(milliseconds(3))}, 3, bipartite{})) {
        CHECK(!own.has_failed());
        CHECK(own.seen.fates.at(outcome::counted) == 100);
    }
}

TEST_CASE("pair_averaging: halves that are cut off from each other fail on both sides") {
    for (const int ranks : {2, 4}) {
        std::vector<rill::fault> cuts;
        for (rill::rank_t one = 0; one < ranks / 2; ++one)
            for (rill::rank_t other = ranks / 2; other < ranks; ++other)
                cuts.push_back(rill::faults::cut_between(one, other).at(milliseconds(3)));
        for (const auto& own : pairs::run_with(cuts, ranks)) {
            CHECK(own.has_failed());
            CHECK((own.culprit < ranks / 2) != (own.other < ranks / 2));
        }
    }
}

namespace pairs {

/// Models that have met, and the bytes between ranks, of ranks that push as fast as they can.
template <class Who>
void check_bytes(int ranks, Who who) {
    constexpr std::size_t size = 2000;
    std::vector<account> all(static_cast<std::size_t>(ranks));
    const auto report = rill::simulated::run(
        ranks, {}, [&](auto& net) { all[static_cast<std::size_t>(net.rank())] = push_some(net, who, 40, size); });
    std::uint64_t bytes = 0, moves = 0;
    for (const auto& link : report.links)
        if (link.source != link.receiver) bytes += link.bytes;
    for (const account& each : all) moves += each.version - each.pushes;
    const std::uint64_t models = moves * size * sizeof(double);  // an exchange moves two models
    CHECK(moves > 40);
    CHECK(bytes > models);
    CHECK(bytes < models + models / 50);
}

}  // namespace pairs

TEST_CASE("pair_averaging: an exchange is two messages of the model and their headers") {
    pairs::check_bytes(2, bipartite{});
    pairs::check_bytes(8, bipartite{});
    pairs::check_bytes(2, anyone{});
    pairs::check_bytes(8, anyone{});
}

namespace pairs {

/// An update that fails on some ranks.
struct fragile {
    using fold_type = rill::aggregate::mean;
    bool breaks = false;

    template <class T>
    struct bound {
        bool breaks;
        void apply(std::span<T>, std::span<const T>, double, std::uint64_t) const {
            if (breaks) throw std::runtime_error("the update breaks");
        }
    };
    template <class T>
    bound<T> bind(std::size_t) const {
        return {breaks};
    }
};

}  // namespace pairs

TEST_CASE("pair_averaging: an update that throws ends the run on all ranks") {
    std::vector<std::string> said(3);
    rill::simulated::run(3, {}, [&](auto& net) {
        pairs::vector model(2);
        pair_averaging replica{net, anyone{}, pairs::fragile{net.rank() == 1}, model};
        try {
            for (int push = 0; push < 50; ++push) {
                replica.push(model, *replica.pull(model));
                net.sleep_until(net.now() + milliseconds(1));
            }
        } catch (const rill::peer_failure& thrown) {
            CHECK(thrown.culprit() == 1);
            said[static_cast<std::size_t>(net.rank())] = "peer";
        } catch (const std::runtime_error& thrown) {
            said[static_cast<std::size_t>(net.rank())] = thrown.what();
        }
    });
    CHECK(said == std::vector<std::string>{"peer", "the update breaks", "peer"});
}

TEST_CASE("pair_averaging: other policies on one rank are a mismatch on all ranks") {
    const auto refused = [](auto make) {
        rill::simulated::run(4, {}, [&](auto& net) {
            const pairs::vector model(2);
            try {
                make(net, model);
                FAIL("no mismatch");
            } catch (const rill::mismatch& thrown) {
                CHECK(thrown.culprit() == 1);
            }
        });
    };
    refused([](auto& net, const auto& model) {
        if (net.rank() == 1)
            pair_averaging{net, anyone{}, plain, model};
        else
            pair_averaging{net, bipartite{}, plain, model};
    });
    refused([](auto& net, const auto& model) {
        const rill::train::descent own{rill::train::sgd{.momentum = net.rank() == 1 ? 0.5 : 0.0},
                                       rill::train::constant_rate{1}};
        pair_averaging{net, bipartite{}, own, model};
    });
    refused([](auto& net, const auto& model) {
        const rill::train::descent own{rill::train::sgd{}, rill::train::constant_rate{net.rank() == 1 ? 0.5 : 0.0}};
        pair_averaging{net, bipartite{}, own, model};
    });
}
