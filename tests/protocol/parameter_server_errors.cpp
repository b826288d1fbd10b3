#include <rill/aggregate/add.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using rill::parameter_server;
using rill::server_options;
using rill::aggregate::add;
using rill::simulated::endpoint;
using rill::straggler::bounded;
using rill::straggler::unbounded;

namespace served_with_faults {

constexpr std::size_t coordinates = 11;

/// Ranks take between 1 and 3 ms for each gradient.
rill::simulated::network uneven() {
    return {.latency = rill::microseconds(10), .computing = [](rill::rank_t rank, std::uint64_t step, double) {
                const float more = rill::counter_rng(rill::random_key{3}.derive(rank)).uniform(step);
                return rill::milliseconds(1) + rill::microseconds(std::int64_t(2000 * more));
            }};
}

/// What one rank saw of a run.
struct account {
    bool has_ended = false;
    std::uint64_t pushes = 0, counted = 0, over = 0;
    std::vector<double> model;
    std::set<rill::rank_t> given_up;
    std::string error;
    rill::rank_t culprit = rill::no_rank;

    void take(auto& replica) {
        while (const auto fate = replica.fate()) {
            counted += fate->what == rill::push_fate::outcome::counted ? 1 : 0;
            over += fate->what == rill::push_fate::outcome::run_over ? 1 : 0;
        }
    }
};

/// Pulls; gives up whoever is named as late.
auto patient_pull(auto& replica, std::vector<double>& model, account& seen) {
    while (true) {
        try {
            return replica.pull(model);
        } catch (const rill::error& late) {
            if (std::string(late.what()).find("give_up") == std::string::npos) throw;
            CHECK(seen.given_up.insert(late.culprit()).second);
            replica.give_up(late.culprit());
        }
    }
}

/// Pushes `steps` times.
void work(endpoint& net, auto& replica, std::uint64_t steps, account& seen) {
    std::vector<double> gradient(coordinates);
    gradient[static_cast<std::size_t>(net.rank())] = gradient.back() = 1;
    while (const auto held = patient_pull(replica, seen.model, seen)) {
        if (seen.pushes == steps) {
            replica.retire();
            continue;
        }
        net.compute(1);
        replica.push(gradient, *held);
        ++seen.pushes;
    }
}

template <class Age>
void count_pushes(endpoint& net, const server_options& options, Age age, std::uint64_t steps, account& seen) {
    seen.model.assign(coordinates, 0);
    try {
        parameter_server replica{net, options, age, add{}, seen.model};
        try {
            work(net, replica, steps, seen);
            seen.has_ended = true;
        } catch (const rill::error&) {
            seen.take(replica);
            throw;
        }
        seen.take(replica);
    } catch (const rill::error& thrown) {
        seen.error = thrown.what();
        seen.culprit = thrown.culprit();
    }
}

template <class Age>
std::vector<account> run(const rill::simulated::network& network, const server_options& options, Age age) {
    std::vector<account> all(4);
    rill::simulated::run(4, network, [&](endpoint& net) {
        count_pushes(net, options, age, 20, all[static_cast<std::size_t>(net.rank())]);
    });
    return all;
}

rill::simulated::network with(const rill::fault& one) {
    rill::simulated::network network = uneven();
    network.faults.faults = {one};
    return network;
}

std::vector<rill::duration> moments() {
    std::vector<rill::duration> all;
    for (int i = 0; i < 12; ++i) all.push_back(rill::microseconds(3000 + 1003 * i));
    return all;
}

}  // namespace served_with_faults

using namespace served_with_faults;

TEST_CASE("parameter_server: a dead worker costs nothing without a bound") {
    for (const int servers : {1, 2})
        for (const rill::duration after : moments()) {
            const rill::rank_t victim = 1;
            CAPTURE(after.ns);
            const auto all = run(with(rill::faults::kill(victim).at(after)), {.servers = servers}, unbounded{});
            CHECK(all[1].pushes < 20);
            for (rill::rank_t rank = 0; rank < 4 - servers; ++rank) {
                if (rank == victim) continue;
                const account& each = all[static_cast<std::size_t>(rank)];
                CHECK(each.error == "");
                CHECK(each.counted == 20);
                CHECK(each.given_up.empty());
                CHECK(each.model == all[0].model);
                CHECK(each.model[static_cast<std::size_t>(rank)] == 20);
                CHECK(each.model[1] <= double(all[1].pushes + 1));
                CHECK(each.model[1] + 1 >= double(all[1].pushes));
            }
            CHECK(all[3].has_ended);  // the server
        }
}

TEST_CASE("parameter_server: under a bound a dead worker is named, and the others go on once it is given up") {
    for (const int servers : {1, 2})
        for (const rill::duration after : moments()) {
            const rill::rank_t victim = 1;
            CAPTURE(after.ns);
            const auto all = run(with(rill::faults::kill(victim).at(after)), {.servers = servers}, bounded{2});
            CHECK(all[1].pushes < 20);
            bool was_named = false;
            for (rill::rank_t rank = 0; rank < 4 - servers; ++rank) {
                if (rank == victim) continue;
                const account& each = all[static_cast<std::size_t>(rank)];
                CHECK(each.error == "");
                for (const rill::rank_t named : each.given_up) CHECK(named == victim);
                was_named = was_named || !each.given_up.empty();
                CHECK(each.counted == 20);
                CHECK(each.model == all[0].model);
            }
            CHECK(was_named);
        }
}

TEST_CASE("parameter_server: where a worker has died, a pull that waits for it throws at once") {
    rill::simulated::run(3, with(rill::faults::kill(1).at(rill::milliseconds(10))), [](endpoint& net) {
        std::vector<double> model(2), gradient(2, 1.0);
        parameter_server replica{net, {.timeout = rill::seconds(1000)}, bounded{0}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const auto held = replica.pull(model);
        if (net.rank() == 1) net.sleep_until(net.now() + rill::seconds(1));
        replica.push(gradient, *held);
        try {
            replica.pull(model);
            FAIL("it did not wait");
        } catch (const rill::error& thrown) {
            CHECK(thrown.culprit() == 1);
        }
        CHECK((net.now() - rill::time_point{}).seconds() < 10);
        replica.give_up(1);
        CHECK(replica.pull(model));
        replica.retire();
        CHECK(!replica.pull(model));
        CHECK(model == std::vector<double>(2, 1.0));
    });
}

TEST_CASE("parameter_server: a push that was lost ends the run when the next one comes") {
    const auto network = with(rill::faults::cut(0, 2).at(rill::milliseconds(10)));
    auto healed = network;
    healed.faults.faults.push_back(rill::faults::heal(0, 2).at(rill::milliseconds(12)));
    rill::simulated::run(3, healed, [](endpoint& net) {
        std::vector<double> model(2), gradient(2, 1.0);
        parameter_server replica{net, {}, unbounded{}, add{}, model};
        const auto all_of_it = [&] {
            auto held = replica.pull(model);
            for (const int at : {5, 11, 20}) {
                if (!held || net.rank() != 0) break;
                net.sleep_until(rill::time_point{} + rill::milliseconds(at));
                replica.push(gradient, *held);
            }
            while (held) {
                net.sleep_until(net.now() + rill::milliseconds(10));
                held = replica.pull(model);
            }
        };
        CHECK_THROWS_WITH_AS(all_of_it(), doctest::Contains("rank 0"), rill::error);
    });
}

TEST_CASE("parameter_server: a worker that does not come on is named at the timeout, given up, and may come back") {
    const server_options options{.timeout = rill::seconds(5)};
    rill::simulated::run(3, {}, [&](endpoint& net) {
        std::vector<double> model(2), gradient(2, 1.0);
        parameter_server replica{net, options, bounded{1}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const rill::time_point begin = net.now();
        if (net.rank() == 1) {
            const auto held = replica.pull(model);
            net.sleep_until(begin + rill::seconds(20));
            replica.push(gradient, *held);
            CHECK(replica.pull(model));
            CHECK(model[0] == 6);
            replica.end();
            CHECK(!replica.pull(model));
            return;
        }
        replica.push(gradient, *replica.pull(model));
        replica.push(gradient, *replica.pull(model));
        for (int i = 0; i < 2; ++i) {  // again: it has not come on, and has not been given up
            try {
                replica.pull(model);
                FAIL("the bound was not kept");
            } catch (const rill::timeout& thrown) {
                CHECK(thrown.culprit() == 1);
                CHECK(std::string(thrown.what()).find("2 pushes behind") != std::string::npos);
            }
        }
        CHECK(net.now() >= begin + rill::seconds(10));
        CHECK(net.now() < begin + rill::seconds(11));
        CHECK(model == std::vector<double>(2, 1.0));  // a pull that throws writes nothing
        replica.give_up(1);
        for (int i = 0; i < 3; ++i) replica.push(gradient, *replica.pull(model));
        CHECK(net.now() < begin + rill::seconds(11));
        net.sleep_until(begin + rill::seconds(21));
        while (replica.pull(model)) continue;
        CHECK(model[0] == 6);
    });
}

TEST_CASE("parameter_server: the end names whom it waits for") {
    const server_options options{.timeout = rill::seconds(5)};
    rill::simulated::run(3, {}, [&](endpoint& net) {
        std::vector<double> model(2), gradient(2, 1.0);
        parameter_server replica{net, options, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const auto held = replica.pull(model);
        if (net.rank() == 1) {
            net.sleep_until(net.now() + rill::seconds(20));
            replica.push(gradient, *held);
            CHECK(!replica.pull(model));
            CHECK(replica.fate()->what == rill::push_fate::outcome::run_over);
            return;
        }
        replica.end();
        for (int i = 0; i < 2; ++i) {
            try {
                replica.pull(model);
                FAIL("the other has not ended");
            } catch (const rill::timeout& thrown) {
                CHECK(thrown.culprit() == 1);
            }
        }
        replica.give_up(1);
        CHECK(!replica.pull(model));
    });
}

TEST_CASE("parameter_server: who retires and then ends the run hides nobody whom others wait for") {
    const server_options options{.timeout = rill::seconds(10), .patience = rill::seconds(1000)};
    rill::simulated::run(4, {}, [&](endpoint& net) {
        std::vector<double> model(2);
        parameter_server replica{net, options, unbounded{}, add{}, model};
        if (replica.is_server()) return static_cast<void>(replica.pull(model));
        const auto begin = net.now();
        REQUIRE(replica.pull(model));
        if (net.rank() == 0) {
            replica.retire();
            net.sleep_until(begin + rill::seconds(9));
            replica.end();
        } else if (net.rank() == 1) {
            net.sleep_until(begin + rill::seconds(1));
            replica.retire();
            try {
                replica.pull(model);
                FAIL("rank 2 has not departed");
            } catch (const rill::timeout& thrown) {
                CHECK(thrown.culprit() == 2);
                CHECK(std::string(thrown.what()).find("give_up(2)") != std::string::npos);
            }
            replica.give_up(2);
        } else {
            net.sleep_until(begin + rill::seconds(100));
        }
        CHECK_NOTHROW(while (replica.pull(model)) continue);
    });
}

TEST_CASE("parameter_server: a dead server is named on all workers and servers") {
    for (const bool dedicated : {true, false})
        for (const rill::rank_t victim : {2, 3})
            for (const rill::duration after : moments()) {
                CAPTURE(after.ns);
                CAPTURE(victim);
                CAPTURE(dedicated);
                const auto all = run(with(rill::faults::kill(victim).at(after)), {.servers = 2, .dedicated = dedicated},
                                     unbounded{});
                for (rill::rank_t rank = 0; rank < 4; ++rank) {
                    if (rank == victim) continue;
                    const account& each = all[static_cast<std::size_t>(rank)];
                    CAPTURE(each.error);
                    CHECK(each.culprit == victim);
                    CHECK(each.counted + each.over == each.pushes);
                }
            }
}

TEST_CASE("parameter_server: a worker whose pushes do not arrive is given up, and told what has not counted") {
    const auto all =
        run(with(rill::faults::cut(0, 3).at(rill::milliseconds(10))), {.timeout = rill::seconds(5)}, unbounded{});
    CHECK(all[0].has_ended);
    CHECK(all[0].over > 0);
    CHECK(all[0].counted + all[0].over == all[0].pushes);
    CHECK(all[0].model[0] == double(all[0].counted));
    for (const std::size_t other : {std::size_t{1}, std::size_t{2}}) {
        CHECK(all[other].has_ended);
        CHECK(all[other].model == all[0].model);
        CHECK(all[other].counted == 20);
    }
}

TEST_CASE("parameter_server: a server that does not answer is named on all ranks, with the link") {
    std::vector<rill::rank_t> culprits;
    rill::simulated::run(3, with(rill::faults::cut(2, 0).at(rill::milliseconds(10))), [&](endpoint& net) {
        std::vector<double> model(2), gradient(2);
        parameter_server replica{net, {.timeout = rill::seconds(5)}, unbounded{}, add{}, model};
        try {
            while (const auto held = replica.pull(model)) {
                net.compute(1);
                replica.push(gradient, *held);
            }
        } catch (const rill::error& thrown) {
            culprits.push_back(thrown.culprit());
            CHECK(thrown.notice().other == 0);
            CHECK(std::string(thrown.what()).find("rank 0 waited 5.000000 s for rank 2, a server") !=
                  std::string::npos);
        }
    });
    CHECK(culprits == std::vector<rill::rank_t>(3, 2));
}

TEST_CASE("parameter_server: a worker that destroys it early retires; a server ends the run on all ranks") {
    for (const bool dedicated : {true, false})
        for (const rill::rank_t early : {0, 2}) {
            std::vector<account> all(3);
            rill::simulated::run(3, uneven(), [&](endpoint& net) {
                const server_options options{.dedicated = dedicated};
                if (net.rank() != early)
                    return count_pushes(net, options, bounded{1}, 20, all[static_cast<std::size_t>(net.rank())]);
                std::vector<double> model(coordinates);
                parameter_server replica{net, options, bounded{1}, add{}, model};
                if (!replica.is_server()) replica.push(model, *replica.pull(model));
            });
            for (rill::rank_t rank = 0; rank < 3; ++rank) {
                if (rank == early) continue;
                const account& each = all[static_cast<std::size_t>(rank)];
                CHECK(each.has_ended == (early == 0));
                if (early != 0) CHECK(each.culprit == early);
                if (early != 0) CHECK(each.error.find("destroyed its parameter_server") != std::string::npos);
            }
        }
}

TEST_CASE("parameter_server: what a worker has pushed that destroys it early counts, whatever room there is") {
    rill::simulated::run(3, {.latency = rill::microseconds(10), .mailbox_bytes = 1000}, [](endpoint& net) {
        std::vector<double> model(50);
        const std::vector<double> gradient(50, 1);
        const auto rest = [&](std::int64_t ms) { net.sleep_until(net.now() + rill::milliseconds(ms)); };
        {
            parameter_server replica{net, {.timeout = rill::seconds(2)}, unbounded{}, add{}, model};
            if (replica.is_server()) {
                rest(10);
                CHECK(!replica.pull(model));
                return;
            }
            const auto held = replica.pull(model);
            for (int i = 0; i < 6; ++i) replica.push(gradient, *held);
            if (net.rank() == 1) {
                replica.retire();
                CHECK(!replica.pull(model));
                CHECK(model == std::vector<double>(50, 12));
            }
        }
        rest(10'000);  // it lives on, so that nobody hears of its end
    });
}

namespace served_with_faults {

/// Throws at the fifth push.
struct short_lived {
    struct bound {
        static void apply(std::span<double>, std::span<const double>, double, std::uint64_t round) {
            if (round == 4) throw std::runtime_error("had enough");
        }
    };
    using fold_type = rill::aggregate::sum;
    template <class T>
    bound bind(std::size_t) const {
        return {};
    }
};

}  // namespace served_with_faults

TEST_CASE("parameter_server: an update that throws ends the run on all ranks, and names its server") {
    for (const bool dedicated : {true, false})
        rill::in_process::run(3, [&](auto& net) {
            std::vector<double> model(4);
            parameter_server replica{net, {.dedicated = dedicated}, unbounded{}, short_lived{}, model};
            const auto work = [&] {
                while (const auto held = replica.pull(model)) replica.push(model, *held);
            };
            try {
                work();
                FAIL("it was to throw");
            } catch (const rill::error& thrown) {
                CHECK(thrown.culprit() == 2);
                CHECK(std::string(thrown.what()).find("had enough") != std::string::npos);
            } catch (const std::runtime_error& own) {
                CHECK(net.rank() == 2);
                CHECK(std::string(own.what()) == "had enough");
            }
        });
}

TEST_CASE("parameter_server: a server that hears of nobody ends the run after its patience, and names who is missing") {
    std::string said;
    rill::simulated::run(2, with(rill::faults::cut(0, 1).at(rill::milliseconds(1))), [&](endpoint& net) {
        const server_options options{.timeout = rill::seconds(5), .patience = rill::seconds(50)};
        std::vector<double> model(2);
        parameter_server replica{net, options, unbounded{}, add{}, model};
        net.sleep_until(rill::time_point{} + rill::milliseconds(2));
        try {
            replica.pull(model);
            FAIL("nothing gets through");
        } catch (const rill::error& thrown) {
            CHECK(thrown.culprit() == 1 - net.rank());
            CHECK(thrown.notice().other == net.rank());
            if (net.rank() == 1) said = thrown.what();
        }
    });
    CHECK(said ==
          "rill: parameter_server (server): rank 1, a server, has heard from no worker for 50.000000 s; rank 0 "
          "has not ended its work");
}
