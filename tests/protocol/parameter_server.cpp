#include <rill/aggregate/add.hpp>
#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/replica.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/local_steps.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

using rill::parameter_server;
using rill::server_options;
using rill::aggregate::add;
using rill::simulated::endpoint;
using rill::straggler::bounded;
using rill::straggler::in_step;
using rill::straggler::unbounded;
using outcome = rill::push_fate::outcome;

namespace served {

using server_of_floats = parameter_server<endpoint, float, bounded, rill::train::descent<>>;
static_assert(rill::Replica<server_of_floats, float>);

/// Ranks take 1 ms and up to `spread` ms more for each gradient.
rill::simulated::network uneven(int spread) {
    return {.latency = rill::microseconds(10), .computing = [=](rill::rank_t rank, std::uint64_t step, double) {
                const float more = rill::counter_rng(rill::random_key{3}.derive(rank)).uniform(step);
                return rill::milliseconds(1) + rill::microseconds(std::int64_t(1000 * more) * spread);
            }};
}

/// What a worker saw of a run.
struct account {
    bool works = false;
    std::uint64_t pushes = 0;
    std::map<outcome, std::uint64_t> fates;
    std::set<std::uint64_t> told, rounds;
    std::vector<double> model;

    void take(auto& replica) {
        while (const auto fate = replica.fate()) {
            CHECK(told.insert(fate->push).second);
            ++fates[fate->what];
            if (fate->what == outcome::counted) CHECK(rounds.insert(fate->round).second);
        }
    }
};

/// Coordinate of worker r: what it has pushed. The model has more coordinates than ranks, so that all parts are used.
constexpr std::size_t coordinates = 23;

/// Pushes until some worker has pushed `last` times, and ends the run then.
template <class Net, class Age>
account count_pushes(Net& net, const server_options& options, Age age, std::uint64_t last, bool all_retire) {
    account seen;
    std::vector<double> model(coordinates), gradient(coordinates);
    parameter_server replica{net, options, age, add{}, model};
    seen.works = !replica.is_server();
    while (const auto held = replica.pull(model)) {
        CHECK(model[static_cast<std::size_t>(net.rank())] == double(seen.pushes));  // its own pushes, always
        seen.take(replica);
        if (seen.pushes >= last) {
            all_retire ? replica.retire() : replica.end();
            continue;
        }
        if constexpr (rill::ComputingTransport<Net>) net.compute(1);
        std::fill(gradient.begin(), gradient.end(), 0);
        gradient[static_cast<std::size_t>(net.rank())] = 1;
        gradient.back() = 1;
        replica.push(gradient, *held);
        ++seen.pushes;
    }
    seen.take(replica);
    seen.model = model;
    return seen;
}

/// Each push has counted once, and all workers have ended with the same model.
void check_books(const std::vector<account>& all) {
    std::uint64_t pushes = 0;
    std::set<std::uint64_t> rounds;
    for (const account& each : all) {
        if (!each.works) continue;
        pushes += each.pushes;
        rounds.insert(each.rounds.begin(), each.rounds.end());
        CHECK(each.told.size() == each.pushes);
        CHECK(each.rounds.size() == each.pushes);
    }
    CHECK(rounds.size() == pushes);
    if (pushes > 0) CHECK(*rounds.rbegin() == pushes - 1);
    for (const account& each : all) {
        if (!each.works) continue;
        CHECK(each.model.back() == double(pushes));
        for (std::size_t rank = 0; rank < all.size(); ++rank) CHECK(each.model[rank] == double(all[rank].pushes));
    }
}

/// All ways to spread servers over so many ranks.
std::vector<server_options> every_option(int ranks) {
    std::vector<server_options> all;
    for (const int servers : {1, 2, ranks})
        for (const bool dedicated : {true, false})
            if (servers <= ranks && (!dedicated || servers < ranks))
                all.push_back({.servers = servers, .dedicated = dedicated});
    return all;
}

}  // namespace served

using namespace served;

TEST_CASE("parameter_server: what is applied is what was pushed, exactly") {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (const server_options& options : every_option(ranks))
            for (const bool all_retire : {false, true}) {
                CAPTURE(ranks);
                CAPTURE(options.servers);
                CAPTURE(options.dedicated);
                const auto check = [&](auto age) {
                    std::vector<account> all(static_cast<std::size_t>(ranks));
                    rill::simulated::run(ranks, uneven(5), [&](endpoint& net) {
                        all[static_cast<std::size_t>(net.rank())] = count_pushes(net, options, age, 20, all_retire);
                    });
                    check_books(all);
                };
                check(unbounded{});
                check(bounded{0});
                check(bounded{3});
                check(in_step{});
            }
}

TEST_CASE("parameter_server: what is applied is what was pushed, among threads") {
    for (const int ranks : {1, 2, 3, 5})
        for (const server_options& options : every_option(ranks)) {
            CAPTURE(ranks);
            CAPTURE(options.servers);
            CAPTURE(options.dedicated);
            const auto check = [&](auto age) {
                std::vector<account> all(static_cast<std::size_t>(ranks));
                rill::in_process::run(ranks, [&](auto& net) {
                    all[static_cast<std::size_t>(net.rank())] = count_pushes(net, options, age, 50, ranks % 2 == 0);
                });
                check_books(all);
            };
            check(unbounded{});
            check(bounded{1});
        }
}

TEST_CASE("parameter_server: no worker reads further ahead of the slowest than the bound lets it") {
    for (const std::uint32_t bound : {0U, 1U, 3U})
        for (const server_options& options : every_option(4)) {
            CAPTURE(bound);
            std::vector<std::uint64_t> clocks(4);
            std::uint64_t furthest = 0;
            rill::simulated::run(4, uneven(20), [&](endpoint& net) {
                std::vector<double> model(coordinates), gradient(coordinates);
                const auto self = static_cast<std::size_t>(net.rank());
                gradient[self] = 1;
                parameter_server replica{net, options, bounded{bound}, add{}, model};
                const auto workers = static_cast<std::size_t>(replica.workers());
                while (const auto held = replica.pull(model)) {
                    for (std::size_t other = 0; other < workers; ++other) {
                        CHECK(model[other] + bound >= double(clocks[self]));
                        CHECK(clocks[other] + bound >= clocks[self]);
                        furthest = std::max(furthest, clocks[self] - std::min(clocks[self], clocks[other]));
                    }
                    if (clocks[self] == 40) {
                        replica.retire();
                        continue;
                    }
                    net.compute(1);
                    replica.push(gradient, *held);
                    ++clocks[self];
                }
            });
            const bool one_worker = options.dedicated && options.servers == 3;
            CHECK(furthest == (one_worker ? 0 : bound));  // nobody waits longer than it must
        }
}

TEST_CASE("parameter_server: without a bound nobody waits for a worker that computes") {
    rill::simulated::run(3, {}, [](endpoint& net) {
        std::vector<double> model(2), gradient(2);
        parameter_server replica{net, {}, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const rill::time_point begin = net.now();
        auto held = replica.pull(model);
        if (net.rank() == 1) net.sleep_until(begin + rill::seconds(10));
        for (int i = 0; net.rank() == 0 && i < 100; ++i) {
            replica.push(gradient, *held);
            held = replica.pull(model);
        }
        if (net.rank() == 0) CHECK(net.now() < begin + rill::milliseconds(100));
        replica.end();
        CHECK(!replica.pull(model));
        CHECK(net.now() >= begin + rill::seconds(10));  // the end waits: the other may still push
    });
}

namespace served {

/// A gradient of whole numbers that depends on model, rank and step.
void whole_gradient(const std::vector<double>& model, int rank, std::uint64_t step, std::vector<double>& to) {
    const rill::counter_rng draw(rill::random_key{11}.derive(rank, step));
    for (std::size_t i = 0; i < model.size(); ++i)
        to[i] = double(std::int64_t(model[i]) / 8) + double(draw.bits(i) % 9);
}

}  // namespace served

TEST_CASE("parameter_server: bounded{0} with one server is lockstep, where sums are exact") {
    for (const int workers : {1, 2, 3, 5}) {
        constexpr std::uint64_t steps = 20;
        std::vector<std::vector<double>> in_lockstep;
        rill::simulated::run(workers, uneven(5), [&](endpoint& net) {
            rill::group all{net, rill::topology::ring{}};
            std::vector<double> model(7), gradient(7);
            for (std::uint64_t step = 0; step < steps; ++step) {
                if (net.rank() == 0) in_lockstep.push_back(model);
                whole_gradient(model, net.rank(), step, gradient);
                rill::all_reduce(all, gradient, gradient);
                for (std::size_t i = 0; i < model.size(); ++i) model[i] -= gradient[i];
            }
            if (net.rank() == 0) in_lockstep.push_back(model);
        });
        rill::simulated::run(workers + 1, uneven(5), [&](endpoint& net) {
            std::vector<double> model(7), gradient(7);
            const rill::train::descent descent{rill::train::sgd{}, rill::train::constant_rate{1.0}};
            parameter_server replica{net, {}, bounded{0}, descent, model};
            std::uint64_t step = 0;
            while (const auto held = replica.pull(model)) {
                CHECK(model == in_lockstep[step]);
                if (step == steps) {
                    replica.retire();
                    continue;
                }
                net.compute(1);
                whole_gradient(model, net.rank(), step++, gradient);
                replica.push(gradient, *held);
            }
            if (!replica.is_server()) CHECK(model == in_lockstep[steps]);
        });
    }
}

TEST_CASE("parameter_server: a worker that has retired is not waited for, and ends with the others") {
    for (const bool dedicated : {true, false})
        rill::simulated::run(3, uneven(1), [&](endpoint& net) {
            std::vector<double> model(3), gradient(3, 1.0);
            parameter_server replica{net, {.dedicated = dedicated}, bounded{1}, add{}, model};
            int pushes = 0;
            while (const auto held = replica.pull(model)) {
                if (pushes == (net.rank() == 0 ? 2 : 30)) {
                    if (net.rank() == 0) net.sleep_until(net.now() + rill::seconds(1));
                    CHECK(net.now() < rill::time_point{} + rill::seconds(2));
                    replica.retire();
                    if (net.rank() == 0) net.sleep_until(net.now() + rill::seconds(100));
                    continue;
                }
                net.compute(1);
                replica.push(gradient, *held);
                ++pushes;
            }
            if (!replica.is_server()) CHECK(model == std::vector<double>(3, dedicated ? 32.0 : 62.0));
        });
}

TEST_CASE("parameter_server: a NaN counts as nothing, names its coordinate, moves the clock, and stops nobody") {
    rill::simulated::run(3, {}, [](endpoint& net) {
        std::vector<double> model(4), gradient(4, 1.0);
        if (net.rank() == 1) gradient[2] = std::numeric_limits<double>::quiet_NaN();
        parameter_server replica{net, {}, bounded{0}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        for (int i = 0; i < 3; ++i) replica.push(gradient, *replica.pull(model));
        replica.retire();
        CHECK(!replica.pull(model));
        CHECK(model == std::vector<double>(4, 3.0));
        for (int i = 0; i < 3; ++i) {
            const auto fate = replica.fate();
            REQUIRE(fate);
            CHECK(fate->what == (net.rank() == 0 ? outcome::counted : outcome::not_finite));
            CHECK(fate->coordinate == (net.rank() == 0 ? 0U : 2U));
            CHECK(fate->weight == (net.rank() == 0 ? 1 : 0));
        }
        CHECK(!replica.fate());
    });
}

TEST_CASE("parameter_server: a fate tells the round, and how many moved the model since it was pulled") {
    rill::simulated::run(3, {}, [](endpoint& net) {
        std::vector<double> model(2), gradient(2, 1.0);
        parameter_server replica{net, {}, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const rill::time_point begin = net.now();
        const auto held = replica.pull(model);
        CHECK(held->version == 0);
        net.sleep_until(begin + rill::seconds(1 + net.rank()));
        replica.push(gradient, *held);
        replica.push(gradient, *held);
        net.sleep_until(begin + rill::seconds(4));
        CHECK(replica.pull(model)->version == 4);
        const std::uint64_t first = 2 * static_cast<std::uint64_t>(net.rank());
        for (std::uint64_t i = 0; i < 2; ++i) {
            const auto fate = replica.fate();
            REQUIRE(fate);
            CHECK(*fate ==
                  rill::push_fate{
                      .push = i, .round = first + i, .weight = 1, .age = static_cast<std::uint32_t>(first + i)});
        }
        replica.end();
        CHECK(!replica.pull(model));
        CHECK(!replica.pull(model));
        CHECK(!replica.fate());
    });
}

TEST_CASE("parameter_server: the first pull of a dedicated server serves until the run is over, and writes nothing") {
    const auto body = [](auto& net) {
        std::vector<double> model(3, 7.0), gradient(3, 1.0);
        parameter_server replica{net, {.servers = 2}, bounded{2}, add{}, model};
        const bool is_server = net.rank() >= 2;
        int pushes = 0;
        while (const auto held = replica.pull(model)) {
            CHECK(!is_server);
            if (pushes++ < 10)
                replica.push(gradient, *held);
            else
                replica.retire();
        }
        CHECK(model == std::vector<double>(3, is_server ? 7.0 : 27.0));
        model[0] = 1;
        CHECK(!replica.pull(model));
        CHECK(model[0] == (is_server ? 1 : 27));
        std::vector<double> values(1);
        CHECK(!replica.pull(std::vector<std::uint32_t>{2}, values));
        CHECK(values[0] == (is_server ? 0 : 27));
        CHECK(!replica.fate() == is_server);
    };
    rill::simulated::run(4, uneven(5), body);
    rill::in_process::run(4, body);
}

TEST_CASE("parameter_server: mean_of_latest holds the mean of what each worker pushed last") {
    for (const server_options& options : every_option(5))
        rill::simulated::run(5, uneven(3), [&](endpoint& net) {
            std::vector<double> model(9);
            parameter_server replica{net, options, unbounded{}, rill::aggregate::mean_of_latest{}, model};
            int pushes = 0;
            while (const auto held = replica.pull(model)) {
                if (pushes == 5) {
                    replica.retire();
                    continue;
                }
                net.compute(1);
                ++pushes;
                replica.push(std::vector<double>(9, pushes * net.rank()), *held);
            }
            if (!replica.is_server()) CHECK(model == std::vector<double>(9, 5 * (replica.workers() - 1) / 2.0));
        });
}

TEST_CASE("parameter_server: replicas follow each other on one transport, and may exist side by side") {
    rill::simulated::run(4, uneven(1), [](endpoint& net) {
        std::vector<double> model(5), other(5), gradient(5, 1.0);
        for (int run = 1; run <= 3; ++run) {
            parameter_server replica{net, {.servers = 4, .dedicated = false}, bounded{2}, add{}, model};
            parameter_server beside{net, {.servers = 1, .dedicated = false}, unbounded{}, add{}, other};
            for (int step = 0; step < 5; ++step) {
                replica.push(gradient, *replica.pull(model));
                beside.push(gradient, *beside.pull(other));
            }
            replica.retire();
            beside.retire();
            CHECK(!replica.pull(model));
            CHECK(!beside.pull(other));
            CHECK(model == std::vector<double>(5, 20.0 * run));
            CHECK(other == model);
        }
    });
}

TEST_CASE("parameter_server: what finds no room in a mailbox waits for it") {
    const auto body = [](auto& net) {
        std::vector<double> model(200), gradient(200, 1.0);
        parameter_server replica{net, {.servers = 2, .dedicated = false}, unbounded{}, add{}, model};
        for (int step = 0; step < 50; ++step) {
            const auto held = replica.pull(model);
            for (int i = 0; i < 4; ++i) replica.push(gradient, *held);
        }
        replica.retire();
        CHECK(!replica.pull(model));
        CHECK(model == std::vector<double>(200, 400.0));
    };
    rill::in_process::run(2, body, {.mailbox_bytes = 1000});
    rill::simulated::run(2, {.mailbox_bytes = 1000}, body);
}

TEST_CASE("parameter_server: what is wrong in a call is refused before anything is sent") {
    rill::simulated::run(3, {}, [](endpoint& net) {
        std::vector<double> model(4), other(3);
        const auto refuses = [&](const server_options& options) {
            CHECK_THROWS_AS((parameter_server{net, options, unbounded{}, add{}, model}), rill::contract_violation);
        };
        refuses({.servers = 0});
        refuses({.servers = 4, .dedicated = false});
        refuses({.servers = 3});
        refuses({.timeout = {}});
        parameter_server replica{net, {}, unbounded{}, add{}, model};
        if (replica.is_server()) {
            CHECK_THROWS_AS(replica.push(model, {}), rill::contract_violation);
            CHECK_THROWS_AS(replica.retire(), rill::contract_violation);
            CHECK_THROWS_AS(replica.end(), rill::contract_violation);
            CHECK(!replica.pull(model));
            return;
        }
        CHECK_THROWS_AS(replica.push(model, {}), rill::contract_violation);  // nothing has been pulled
        CHECK_THROWS_AS(replica.pull(other), rill::contract_violation);
        const auto held = replica.pull(model);
        CHECK_THROWS_AS(replica.push(other, *held), rill::contract_violation);
        CHECK_THROWS_AS(replica.push(model, {.version = held->version + 1}), rill::contract_violation);
        CHECK_THROWS_AS(replica.give_up(net.rank()), rill::contract_violation);
        CHECK_THROWS_AS(replica.give_up(2), rill::contract_violation);
        replica.retire();
        CHECK_THROWS_AS(replica.push(model, *held), rill::contract_violation);
        CHECK(!replica.pull(model));
        CHECK(!replica.fate());
        CHECK(model == std::vector<double>(4));
    });
}

TEST_CASE("parameter_server: other options, policies or another model on one rank are a mismatch, which names it") {
    const auto culprits = [](auto&& make) {
        std::set<rill::rank_t> all;
        rill::simulated::run(3, {}, [&](endpoint& net) {
            std::vector<double> model(2);
            try {
                make(net, model, net.rank() == 1);
            } catch (const rill::mismatch& thrown) {
                all.insert(thrown.culprit());
            }
        });
        return all;
    };
    const std::set<rill::rank_t> odd{1};
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              parameter_server replica{net, {.servers = is_odd ? 1 : 2}, bounded{2}, add{}, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              parameter_server replica{net, {.dedicated = is_odd}, bounded{2}, add{}, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              parameter_server replica{net, {.timeout = rill::seconds(is_odd ? 1 : 2)}, bounded{2}, add{}, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              parameter_server replica{net, {.patience = rill::seconds(is_odd ? 100 : 200)}, bounded{2}, add{}, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              parameter_server replica{net, {}, bounded{is_odd ? 1U : 2U}, add{}, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              if (is_odd)
                  parameter_server replica{net, {}, bounded{2}, rill::aggregate::mean_of_latest{}, model};
              else
                  parameter_server replica{net, {}, bounded{2}, add{}, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              const rill::train::descent rule{rill::train::sgd{.momentum = is_odd ? 0.0 : 0.5},
                                              rill::train::constant_rate{1}};
              parameter_server replica{net, {}, bounded{2}, rule, model};
          }) == odd);
    CHECK(culprits([](auto& net, auto& model, bool is_odd) {
              if (is_odd) model[1] = 1;
              parameter_server replica{net, {}, bounded{2}, add{}, model};
          }) == odd);
}

TEST_CASE("parameter_server: local steps push what they have moved") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        const rill::train::descent inner{rill::train::sgd{}, rill::train::constant_rate{0.5}};
        const rill::train::descent outer{rill::train::sgd{}, rill::train::constant_rate{1}};
        std::vector<double> model(5, 64), gradient(5);
        parameter_server server{net, {}, bounded{1}, outer, model};
        if (server.is_server()) return static_cast<void>(server.pull(model));
        rill::local_steps replica{server, {.every = 4}, inner, model};
        for (int step = 0; step < 6; ++step) {
            const auto held = replica.pull(model);
            gradient = model;  // each step halves the model
            replica.push(gradient, *held);
        }
        replica.retire();  // pushes the last two
        CHECK(!replica.pull(model));
        CHECK(model == std::vector<double>(5, 1.0));
    });
}
