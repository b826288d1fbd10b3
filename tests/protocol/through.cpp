// Groups that run rounds of their own and share a model (`partial_all_reduce::through`).
#include <rill/aggregate/add.hpp>
#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/linear_mean.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace rill::straggler;
using outcome = rill::push_fate::outcome;
using rill::simulated::endpoint;
using rill::topology::ring;

/// Of `ranks` workers, the odd ones take ten times as long for a gradient.
rill::simulated::network two_speeds() {
    return {.latency = rill::microseconds(10), .computing = [](rill::rank_t rank, std::uint64_t step, double) {
                const float more = rill::counter_rng(rill::random_key{3}.derive(rank)).uniform(step);
                return rill::microseconds(static_cast<std::int64_t>(1000 * (1 + more))) * (rank % 2 == 0 ? 1 : 10);
            }};
}

/// The workers of a rank's group: even or odd ranks, of those below `workers`.
rill::view alike(int rank, int workers) {
    rill::view of;
    for (rill::rank_t each = rank % 2; each < workers; each += 2) of.members.push_back(each);
    return of;
}

struct plan {
    int servers = 1;
    bool dedicated = false;
    std::uint64_t every = 3;
    std::uint64_t last = 20;  ///< rounds of each group
    bool ends_all = false;    ///< the first group to end ends the run of the center
    int late = -1;            ///< this rank joins its group only after a second
};

/// What one rank saw.
struct account {
    double counted = 0;              ///< its gradients
    std::vector<double> own, final;  ///< the model of its group, and of all
    std::uint64_t version = 0;
    bool has_begun = false;
    std::string error;
    rill::rank_t culprit = rill::no_rank;
};

/// Each rank pushes gradients that are 1 at its coordinate; changes are added up.
template <class Net>
void try_to_work(Net& net, const plan& of, account& seen) {
    const int workers = of.dedicated ? net.size() - of.servers : net.size();
    std::vector<double> model(static_cast<std::size_t>(net.size())), gradient = model;
    gradient[static_cast<std::size_t>(net.rank())] = 1;
    rill::parameter_server center{net,
                                  {.servers = of.servers, .dedicated = of.dedicated, .timeout = rill::seconds(1000)},
                                  unbounded{},
                                  rill::aggregate::add{},
                                  model};
    if (center.is_server()) {
        center.pull(model);
        return;
    }
    if (net.rank() == of.late) net.sleep_until(net.now() + rill::seconds(1));
    rill::subgroup mine{net, alike(net.rank(), workers)};
    rill::group group{mine, ring{}, {.timeout = rill::seconds(10)}};
    rill::partial_all_reduce replica{group, two_choices{1}, bounded{100}, plain_sum{}, rill::aggregate::add{}, model};
    replica.through(center, {.every = of.every});
    seen.has_begun = true;
    while (const auto held = replica.pull(model)) {
        if (held->version >= of.last) {
            replica.end();
            continue;
        }
        if constexpr (requires { net.compute(1); }) net.compute(1);
        replica.push(gradient, *held);
    }
    while (const auto fate = replica.fate())
        if (fate->what == outcome::counted) seen.counted += fate->weight;
    seen.version = replica.version();
    seen.own.assign(replica.newest().begin(), replica.newest().end());
    if (of.ends_all) center.end();
    while (center.pull(model)) continue;
    seen.final = model;
}

template <class Net>
account work(Net& net, const plan& of) {
    account seen;
    try {
        try_to_work(net, of, seen);
    } catch (const rill::error& thrown) {
        seen.error = thrown.what();
        seen.culprit = thrown.culprit();
    }
    return seen;
}

/// Four workers in two groups, in step, and a server, rank 4. Calls `body(center, replica, push)` on each worker;
/// `push(rounds)` pushes gradients that are 1 at its rank until its group has made so many rounds, and ends the run of
/// the group. `timeout`: of the center. The groups meet there every so many rounds.
template <class Body>
void in_step_of_groups(endpoint& net, rill::duration timeout, std::uint64_t every, Body&& body) {
    std::vector<double> model(4), gradient(4);
    rill::parameter_server center{
        net, {.dedicated = true, .timeout = timeout}, unbounded{}, rill::aggregate::add{}, model};
    if (center.is_server()) {
        center.pull(model);
        return;
    }
    gradient[static_cast<std::size_t>(net.rank())] = 1;
    rill::subgroup mine{net, alike(net.rank(), 4)};
    rill::group group{mine, ring{}, {.timeout = rill::seconds(10)}};
    rill::partial_all_reduce replica{group, all_ready{}, in_step{}, plain_sum{}, rill::aggregate::add{}, model};
    replica.through(center, {.every = every});
    body(center, replica, [&](std::uint64_t rounds) {
        while (const auto held = replica.pull(model)) {
            if (held->version >= rounds) {
                replica.end();
                continue;
            }
            net.compute(1);
            replica.push(gradient, *held);
        }
    });
}

std::vector<account> work_of(int ranks, const plan& of, rill::fault_plan faults = {}) {
    std::vector<account> all(static_cast<std::size_t>(ranks));
    auto network = two_speeds();
    network.faults = std::move(faults);
    rill::simulated::run(ranks, network,
                         [&](endpoint& net) { all[static_cast<std::size_t>(net.rank())] = work(net, of); });
    return all;
}

/// The final model is the same on all workers and holds each gradient that counted once.
void check_books(const std::vector<account>& all, int workers) {
    for (int rank = 0; rank < workers; ++rank) {
        CAPTURE(rank);
        const account& each = all[static_cast<std::size_t>(rank)];
        CHECK(each.error.empty());
        CHECK(each.final == all[0].final);
        CHECK(each.final[static_cast<std::size_t>(rank)] == each.counted);
        CHECK(each.counted > 0);
        CHECK(each.own == all[static_cast<std::size_t>(rank % 2)].own);
    }
}

}  // namespace

TEST_CASE("through: the model of all groups holds each gradient of each group once") {
    for (const unsigned every : {1U, 3U, 7U, 1000U})
        for (const int servers : {1, 2}) {
            CAPTURE(every);
            CAPTURE(servers);
            check_books(work_of(5, {.servers = servers, .every = every}), 5);
            check_books(work_of(6, {.servers = servers, .dedicated = true, .every = every}), 6 - servers);
        }
}

TEST_CASE("through: a group learns what the others have changed, and goes at its own pace") {
    const auto all = work_of(4, {.every = 2, .last = 50});
    CHECK(all[1].own[0] > 0);
    CHECK(all[0].own[1] >= 0);
    CHECK(all[0].version >= 50);
    CHECK(all[1].version >= 50);
    // The fast group has ended first, so that it cannot know all that the slow one did.
    CHECK(all[0].own[1] < all[0].final[1]);
    CHECK(all[0].own[0] == all[0].final[0]);
}

TEST_CASE("through: a group that ends the run of the center ends the other groups at their next meeting") {
    for (const unsigned every : {1U, 3U, 8U})
        for (const int servers : {1, 3}) {
            const auto all = work_of(7, {.servers = servers, .every = every, .last = 40, .ends_all = true});
            check_books(all, 7);
            CHECK(all[0].version >= 40);
            CHECK(all[1].version < 40);
            CHECK(all[1].version % every == 0);
            const auto dedicated =
                work_of(7, {.servers = servers, .dedicated = true, .every = every, .last = 40, .ends_all = true});
            check_books(dedicated, 7 - servers);
        }
}

TEST_CASE("through: a group of one rank, and a run of one group") {
    check_books(work_of(2, {.every = 4}), 2);
    check_books(work_of(1, {.every = 4}), 1);
    check_books(work_of(3, {.dedicated = true, .every = 1}), 2);
}

TEST_CASE("through: the same seed gives the same bits") {
    const auto once = work_of(5, {.every = 3}), again = work_of(5, {.every = 3});
    for (std::size_t rank = 0; rank < once.size(); ++rank) {
        CHECK(once[rank].own == again[rank].own);
        CHECK(once[rank].final == again[rank].final);
    }
}

TEST_CASE("through: among threads") {
    std::vector<account> all(5);
    rill::in_process::run(5, [&](auto& net) { all[static_cast<std::size_t>(net.rank())] = work(net, {.every = 2}); });
    check_books(all, 5);
}

TEST_CASE("through: the mean of the groups' latest models, each told by its group's first rank") {
    std::vector<std::vector<double>> finals(4);
    rill::simulated::run(4, two_speeds(), [&](endpoint& net) {
        std::vector<double> model{1000}, gradient{-1};
        rill::parameter_server center{net, {.dedicated = false}, unbounded{}, rill::aggregate::mean_of_latest{}, model};
        rill::subgroup mine{net, alike(net.rank(), 4)};
        rill::group group{mine, ring{}};
        const rill::train::descent count{rill::train::sgd{}, rill::train::constant_rate{1}};
        rill::partial_all_reduce replica{group, majority{}, bounded{100}, linear_mean{}, count, model};
        replica.through(center, {.every = 1000});  // they meet once, after the last round
        double last = 0;
        while (const auto held = replica.pull(model)) {
            last = model[0];
            if (held->version >= 10U + 10U * static_cast<unsigned>(net.rank() % 2)) {
                replica.end();
                continue;
            }
            net.compute(1);
            replica.push(gradient, *held);
        }
        const double own = replica.newest()[0];
        if (net.rank() % 2 == 0) CHECK(own >= last);
        while (center.pull(model)) continue;
        finals[static_cast<std::size_t>(net.rank())] = {own, model[0]};
    });
    // The fast group has met nobody. What the slow one holds is the mean, which is what the center holds.
    const double fast = finals[0][0], both = finals[1][0];
    CHECK(fast == finals[2][0]);
    CHECK(both > fast);
    for (const auto& each : finals) CHECK(each[1] == both);
}

TEST_CASE("through: a group that fails leaves the others running") {
    constexpr int workers = 6;
    int failed = 0, stayed = 0;
    for (rill::rank_t victim = 0; victim < workers; ++victim)
        for (std::uint64_t after = 5; after < 200; after += 13) {
            CAPTURE(victim);
            CAPTURE(after);
            const auto all = work_of(workers + 1, {.dedicated = true, .every = 2, .last = 30},
                                     {.faults = {rill::faults::kill(victim).after(after)}});
            for (int rank = 0; rank < workers; ++rank) {
                const account& each = all[static_cast<std::size_t>(rank)];
                CAPTURE(rank);
                if (rank == victim) continue;
                if (!each.error.empty()) {
                    ++failed;
                    if (!each.has_begun) continue;  // all ranks make the center
                    CHECK(rank % 2 == victim % 2);
                    CHECK(each.culprit == victim / 2);  // its rank in the group
                    continue;
                }
                ++stayed;
                CHECK(each.version >= 30);
                CHECK(each.final == all[victim == 0 ? 1 : 1 - static_cast<std::size_t>(victim % 2)].final);
                CHECK(each.final[static_cast<std::size_t>(rank)] == each.counted);
            }
        }
    CHECK(failed > 50);
    CHECK(stayed > 100);
}

TEST_CASE("through: a center that fails ends each group, which names who has met it") {
    const auto all =
        work_of(5, {.dedicated = true, .every = 1, .last = 1000}, {.faults = {rill::faults::kill(4).after(40)}});
    for (int rank = 0; rank < 4; ++rank) {
        const account& each = all[static_cast<std::size_t>(rank)];
        CAPTURE(each.error);
        CHECK(each.error.find("has no model between the groups") != std::string::npos);
        CHECK(each.error.find("rank 4, a server, has ended") != std::string::npos);
        CHECK((each.culprit == 0 || each.culprit == 1));
    }
}

TEST_CASE("through: what the last model of a group holds has counted, also where the center fails") {
    auto network = two_speeds();
    network.faults = {.faults = {rill::faults::kill(4).after(40)}};
    int failed = 0;
    rill::simulated::run(5, network, [&](endpoint& net) {
        in_step_of_groups(net, rill::seconds(1000), 1, [&](auto&, auto& replica, const auto& push) {
            CHECK_THROWS_AS(push(1000), rill::error);
            ++failed;
            double counted = 0;
            while (const auto fate = replica.fate())
                if (fate->what == outcome::counted) counted += fate->weight;
            CHECK(counted > 0);
            CHECK(replica.newest()[static_cast<std::size_t>(net.rank())] == counted);
        });
    });
    CHECK(failed == 4);
}

TEST_CASE("through: a group that was given up ends with the final model when it meets the center again") {
    int given_up = 0;
    std::vector<std::vector<double>> last(4, std::vector<double>(4));
    rill::simulated::run(5, two_speeds(), [&](endpoint& net) {
        in_step_of_groups(net, rill::milliseconds(30), 20, [&](auto& center, auto&, const auto& push) {
            push(20);
            auto& model = last[static_cast<std::size_t>(net.rank())];
            for (bool is_over = false; !is_over;) try {
                    while (center.pull(model)) continue;
                    is_over = true;
                } catch (const rill::error& late) {
                    CAPTURE(late.what());
                    REQUIRE(std::string(late.what()).find("give_up") != std::string::npos);
                    REQUIRE(net.rank() % 2 == 0);  // the fast group waits for the slow one
                    REQUIRE(late.culprit() % 2 == 1);
                    center.give_up(late.culprit());
                    ++given_up;
                }
        });
    });
    CHECK(given_up > 0);
    for (const auto& each : last) CHECK(each == last[0]);
}

TEST_CASE("through: a group that has come off to infinity fails, and what it has changed is not lost in silence") {
    for (const bool tells_models : {false, true}) {
        int failed = 0;
        const auto run = [&](endpoint& net, const auto& shared) {
            std::vector<float> model(2);
            const rill::server_options servers{.dedicated = false, .timeout = rill::seconds(1000)};
            rill::parameter_server center{net, servers, unbounded{}, shared, model};
            rill::subgroup mine{net, alike(net.rank(), 4)};
            rill::group group{mine, ring{}, {.timeout = rill::seconds(10)}};
            rill::partial_all_reduce replica{group, all_ready{}, in_step{}, plain_sum{}, rill::aggregate::add{}, model};
            replica.through(center, {.every = 2});
            const std::vector<float> gradient{1, net.rank() % 2 == 1 ? 2e38F : 1.0F};
            const auto descend = [&] {
                while (const auto held = replica.pull(model)) {
                    if (held->version >= 10) {
                        replica.end();
                        continue;
                    }
                    net.compute(1);
                    replica.push(gradient, *held);
                }
            };
            if (net.rank() % 2 == 0) {
                CHECK_NOTHROW(descend());
            } else {
                CHECK_THROWS_WITH_AS(descend(), doctest::Contains("is not finite at coordinate 1"), rill::error);
                center.retire();
                ++failed;
            }
            while (center.pull(model)) continue;
            CHECK(model[0] > 0);
            CHECK(model[0] == model[1]);
        };
        rill::simulated::run(4, two_speeds(), [&](endpoint& net) {
            tells_models ? run(net, rill::aggregate::mean_of_latest{}) : run(net, rill::aggregate::add{});
        });
        CHECK(failed == 2);
    }
}

TEST_CASE("through: a group that joins when another has ended the run of the center ends at once") {
    for (const bool dedicated : {false, true})
        for (const int late : {1, 3}) {
            const plan of{.servers = 1, .dedicated = dedicated, .ends_all = true, .late = late};
            const auto all = work_of(dedicated ? 5 : 4, of);
            for (std::size_t rank = 0; rank < 4; ++rank) {
                CAPTURE(rank);
                REQUIRE(all[rank].error.empty());
                CHECK(all[rank].final == all[0].final);
                CHECK(all[rank].final[rank] == all[rank].counted);
                CHECK((all[rank].version == 0) == (rank % 2 == 1));
            }
        }
}

TEST_CASE("through: ranks of one group may learn at different times that the run of the center has ended") {
    int split = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const rill::fault slow_link = rill::faults::delay_up_to(rill::milliseconds(100)).on(3, 4);
        const auto all = work_of(5, {.dedicated = true, .ends_all = true}, {.faults = {slow_link}, .seed = seed});
        for (std::size_t rank = 0; rank < 4; ++rank) {
            REQUIRE(all[rank].error.empty());
            CHECK(all[rank].final == all[0].final);
            CHECK(all[rank].final[rank] == all[rank].counted);
        }
        split += all[3].version == 0 ? 1 : 0;
    }
    CHECK(split > 0);
}

TEST_CASE("through: refuses an interval of 0, one that differs between ranks, and a call after the first pull") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        std::vector<double> model(3);
        rill::group workers{net, ring{}};
        rill::parameter_server center{net, {.dedicated = false}, unbounded{}, rill::aggregate::add{}, model};
        rill::partial_all_reduce replica{workers, majority{}, bounded{1}, plain_sum{}, rill::aggregate::add{}, model};
        CHECK_THROWS_WITH_AS(replica.through(center, {.every = 0}), doctest::Contains("every is 0"),
                             rill::contract_violation);
        CHECK_THROWS_WITH_AS(replica.through(center, {.every = 1U + static_cast<unsigned>(net.rank())}),
                             doctest::Contains("another interval between meetings"), rill::mismatch);
    });
    rill::simulated::run(2, {}, [](endpoint& net) {
        std::vector<double> model(3);
        rill::group workers{net, ring{}};
        rill::parameter_server center{net, {.dedicated = false}, unbounded{}, rill::aggregate::add{}, model};
        rill::partial_all_reduce replica{workers, majority{}, bounded{1}, plain_sum{}, rill::aggregate::add{}, model};
        CHECK(replica.pull(model));
        CHECK_THROWS_AS(replica.through(center, {}), rill::contract_violation);
        replica.retire();
        while (replica.pull(model)) continue;
        center.retire();
        while (center.pull(model)) continue;
    });
}

TEST_CASE("through: a center that one of its servers has moved is not taken for one with another first model") {
    const rill::simulated::network network{.latency = rill::microseconds(10),
                                           .links = [](rill::rank_t from, rill::rank_t to) {
                                               rill::network_link way;
                                               const bool is_far = to == 4 && from % 2 == 0 && from < 4;
                                               way.latency = is_far ? rill::milliseconds(100) : rill::microseconds(10);
                                               return way;
                                           }};
    for (std::int64_t wait = 0; wait < 800; wait += 20) {
        CAPTURE(wait);
        rill::simulated::run(6, network, [&](endpoint& net) {
            std::vector<double> model(6);
            const std::vector<double> gradient(6, 1.0);
            rill::parameter_server center{
                net, {.servers = 2, .dedicated = true}, unbounded{}, rill::aggregate::add{}, model};
            if (center.is_server()) {
                while (center.pull(model)) continue;
                return;
            }
            if (net.rank() % 2 != 0) net.sleep_until(net.now() + rill::milliseconds(wait));
            rill::subgroup part{net, alike(net.rank(), 4)};
            rill::group workers{part, ring{}};
            rill::partial_all_reduce replica{workers, majority{}, bounded{1}, plain_sum{}, rill::aggregate::add{},
                                             model};
            CHECK_NOTHROW(replica.through(center, {.every = 1}));
            for (int i = 0; i < 3; ++i) {
                const auto held = replica.pull(model);
                if (!held) break;
                replica.push(gradient, *held);
            }
            replica.retire();
            while (replica.pull(model)) continue;
            center.end();
            while (center.pull(model)) continue;
        });
    }
}

TEST_CASE("through: refuses a center that has another first model than the group") {
    rill::simulated::run(2, {}, [](endpoint& net) {
        std::vector<double> model(3), other{0, 0, 1};
        rill::group workers{net, ring{}};
        rill::parameter_server center{net, {.dedicated = false}, unbounded{}, rill::aggregate::add{}, other};
        rill::partial_all_reduce replica{workers, majority{}, bounded{1}, plain_sum{}, rill::aggregate::add{}, model};
        CHECK_THROWS_WITH_AS(replica.through(center, {}), doctest::Contains("another first model than the group"),
                             rill::contract_violation);
        center.retire();
        while (center.pull(model)) continue;
        CHECK(model == other);
    });
}
