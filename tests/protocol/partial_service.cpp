// The service of a partial all-reduce: its clocks, and what it has to do with the calls of the group that it was made
// of.
#include <rill/aggregate/add.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace rill::straggler;
using rill::partial_all_reduce;
using rill::aggregate::add;
using rill::simulated::endpoint;
using rill::topology::ring;

namespace service {

constexpr rill::duration timeout = rill::seconds(2);

template <class Start>
void compute_long(endpoint& net, Start start) {
    rill::group workers{net, ring{}, {.timeout = timeout}};
    std::vector<double> model(3);
    partial_all_reduce replica{workers, start, bounded{4}, plain_sum{}, add{}, model};
    std::uint64_t pushes = 0;
    double weight = 0;
    while (const auto held = replica.pull(model)) {
        if (held->version >= 4) {
            replica.end();
            continue;
        }
        net.sleep_until(net.now() + timeout * 50 + rill::milliseconds(300) * net.rank());
        replica.push(std::vector<double>(3, 1), *held);
        ++pushes;
    }
    while (const auto fate = replica.fate()) weight += fate->weight;
    CHECK(pushes > 0);
    std::vector<double> sum{weight};
    rill::group patient{net, ring{}, {.timeout = timeout * 100}};  // one rank was computing still as the run ended
    rill::all_reduce(patient, sum, sum);
    CHECK(model == std::vector<double>(3, sum[0]));
}

}  // namespace service

TEST_CASE("partial_all_reduce: between rounds no clock runs") {
    for (const int ranks : {1, 2, 5})
        rill::simulated::run(ranks, {.latency = rill::microseconds(10)}, [](endpoint& net) {
            service::compute_long(net, all_ready{});
            service::compute_long(net, majority{});
            service::compute_long(net, solo{});
        });
}

TEST_CASE("partial_all_reduce: where a rank is silent, the timeout begins with the start of the round") {
    using service::timeout;
    const rill::duration cut_at = timeout * 30, start = timeout * 60;
    for (const rill::rank_t silent : {0, 1, 2, 3}) {
        // Silence that is told ends the run; here nothing is told before the round begins.
        rill::simulated::network network{.latency = rill::microseconds(10), .silence = timeout * 100};
        for (rill::rank_t other = 0; other < 4; ++other)
            if (other != silent) network.faults.faults.push_back(rill::faults::cut_between(silent, other).at(cut_at));
        rill::simulated::run(4, network, [&](endpoint& net) {
            rill::group workers{net, ring{}, {.timeout = timeout}};
            std::vector<double> model(3);
            partial_all_reduce replica{workers, solo{}, in_step{}, plain_sum{}, add{}, model};
            const std::vector<double> ones(3, 1);
            const auto first = replica.pull(model);
            replica.push(ones, *first);
            net.sleep_until(rill::time_point{} + start);
            CHECK(replica.pull(model)->version >= 1);
            replica.push(ones, {.version = 0});
            rill::time_point failed{};
            std::string error;
            rill::rank_t culprit = rill::no_rank;
            try {
                while (const auto held = replica.pull(model)) replica.push(ones, *held);
            } catch (const rill::error& thrown) {
                failed = net.now();
                error = thrown.what();
                culprit = thrown.culprit();
            }
            CAPTURE(silent);
            CAPTURE(net.rank());
            CAPTURE(error);
            const double waited = (failed - (rill::time_point{} + start)).seconds() / timeout.seconds();
            CHECK(waited >= 1);
            CHECK(waited < 1.5);
            if (net.rank() != silent) CHECK(culprit == silent);
        });
    }
}

namespace service {

/// Calls of the group beside the rounds of a service that was made of it, on any transport.
void call_beside(auto& net) {
    rill::group workers{net, ring{}};
    const auto size = static_cast<std::size_t>(net.size()), rank = static_cast<std::size_t>(net.rank());
    std::vector<double> model(size), gradient(size), sum(7);
    gradient[rank] = 1;
    partial_all_reduce replica{workers, solo{}, bounded{1000}, plain_sum{}, add{}, model};
    constexpr int calls = 30;
    double weight = 0;
    for (int call = 0; call < calls; ++call) {
        const auto held = replica.pull(model);
        REQUIRE(held);
        for (int push = 0; push <= net.rank() % 3; ++push) replica.push(gradient, *held);
        std::vector<double> own(7, double(call * (net.rank() + 1)));
        const rill::receipt done = rill::all_reduce(workers, own, sum);
        CHECK(sum == std::vector<double>(7, call * double(size * (size + 1)) / 2));
        CHECK(done.contributors == net.size());
    }
    CHECK(workers.operation_number() == calls);
    replica.retire();
    while (replica.pull(model)) continue;
    while (const auto fate = replica.fate()) weight += fate->weight;
    CHECK(weight == calls * (1 + net.rank() % 3));
    CHECK(model[rank] == weight);
}

}  // namespace service

TEST_CASE("partial_all_reduce: calls of the group run beside its service, and neither disturbs the other") {
    for (const int ranks : {1, 2, 5}) {
        rill::simulated::run(ranks, {.latency = rill::microseconds(10)}, [](auto& net) { service::call_beside(net); });
        rill::in_process::run(ranks, [](auto& net) { service::call_beside(net); });
    }
}

TEST_CASE("partial_all_reduce: a call of the group that fails names its culprit, and the rounds go on") {
    rill::simulated::run(3, {.latency = rill::microseconds(10)}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> model(3), gradient(3), own(net.rank() == 1 ? 8 : 7, 1.0);
        gradient[static_cast<std::size_t>(net.rank())] = 1;
        partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add{}, model};
        int pushes = 0;
        for (; pushes < 5; ++pushes) replica.push(gradient, *replica.pull(model));
        std::string error;
        try {
            rill::all_reduce(workers, own, own);
        } catch (const rill::mismatch& thrown) {
            CHECK(thrown.culprit() == 1);
            error = thrown.what();
        }
        CAPTURE(error);
        CHECK(error.find("all_reduce (operation 1)") != std::string::npos);
        for (; pushes < 10; ++pushes) replica.push(gradient, *replica.pull(model));
        replica.retire();
        while (replica.pull(model)) continue;
        CHECK(model == std::vector<double>(3, 10));
    });
}

TEST_CASE("partial_all_reduce: rounds that fail name their culprit, and the calls of the group go on") {
    rill::simulated::run(3, {.latency = rill::microseconds(10)}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        std::vector<double> own(7, net.rank() + 1.0), sum(7);
        std::string error;
        {
            std::vector<double> model(3);
            partial_all_reduce replica{workers, all_ready{}, in_step{}, plain_sum{}, add{}, model};
            try {
                for (int pushes = 0; pushes < 5; ++pushes) replica.push(model, *replica.pull(model));
                if (net.rank() != 2) replica.pull(model);  // rank 2 destroys its replica
            } catch (const rill::error& thrown) {
                CHECK(thrown.culprit() == 2);
                error = thrown.what();
            }
            CAPTURE(error);
            CHECK((error.find("rank 2 has destroyed its partial_all_reduce") != std::string::npos) ==
                  (net.rank() != 2));
        }
        for (int call = 0; call < 5; ++call) {
            rill::all_reduce(workers, own, sum);
            CHECK(sum == std::vector<double>(7, 6));
        }
    });
}
