// A steady-state step of a replica allocates nothing, but for a worker's question to each parameter server.
#include "../support/allocations.hpp"

#ifndef RILL_TEST_SANITIZED

#include <rill/aggregate/add.hpp>
#include <rill/collective/group.hpp>
#include <rill/protocol/local_steps.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/straggler.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace steady {

using namespace rill::straggler;

constexpr int ranks = 4;
constexpr std::size_t dimension = 2000;
constexpr std::uint64_t begin = 60, window = 40, windows = 3;

/// How often all ranks allocate in a step of rank 0: the least of several stretches of steps, since a rank that the
/// operating system holds up can fill a mailbox more than ever before.
template <class Net, class Replica>
double allocations_per_step(Net& net, Replica& replica, std::vector<float>& model) {
    const std::vector<float> gradient(model.size(), 1);
    unsigned long before = 0, least = ~0UL;
    std::uint64_t step = 0;
    while (const auto held = replica.pull(model)) {
        while (replica.fate()) continue;
        if (step >= begin && (step - begin) % window == 0) {
            if (step > begin) least = std::min(least, all_allocations() - before);
            before = all_allocations();
        }
        if (step == begin + windows * window) {
            replica.retire();
            continue;
        }
        net.compute(1);
        replica.push(gradient, *held);
        ++step;
    }
    return static_cast<double>(least) / static_cast<double>(window);
}

/// A thread has no simulated work.
struct idle_thread {
    rill::in_process::endpoint& net;
    void compute(double) {}
};

/// `questions`: how many questions the ranks ask servers in a step of each. In the simulator all ranks have one cache
/// of message buffers. Each thread has one of its own; where threads send as many messages as they get on average only,
/// such a cache is empty now and then.
template <class Make>
void check(Make make, double questions = 0) {
    double threads = 0, simulated = 0;
    const auto first = std::vector<float>(dimension);
    rill::in_process::run(ranks, [&](auto& net) {
        std::vector<float> model = first;
        make(net, model, [&](auto& replica) {
            idle_thread own{net};
            const double each = allocations_per_step(own, replica, model);
            if (net.rank() == 0) threads = each;
        });
    });
    const rill::simulated::network even{.latency = rill::microseconds(10),
                                        .computing = [](auto...) { return rill::milliseconds(1); }};
    rill::simulated::run(ranks, even, [&](auto& net) {
        std::vector<float> model = first;
        make(net, model, [&](auto& replica) {
            const double each = allocations_per_step(net, replica, model);
            if (net.rank() == 0) simulated = each;
        });
    });
    CHECK(threads < questions + 1);
    CHECK(simulated == questions);
}

}  // namespace steady

TEST_CASE("partial_all_reduce: a steady-state step allocates nothing") {
    steady::check([](auto& net, auto& model, auto work) {
        rill::group workers{net, rill::topology::ring{}};
        rill::partial_all_reduce replica{workers,
                                         rill::straggler::all_ready{},
                                         rill::straggler::in_step{},
                                         rill::straggler::plain_sum{},
                                         rill::aggregate::add{},
                                         model};
        work(replica);
    });
    steady::check([](auto& net, auto& model, auto work) {
        rill::group workers{net, rill::topology::ring{}};
        rill::partial_all_reduce replica{workers,
                                         rill::straggler::two_choices{2},
                                         rill::straggler::bounded{4},
                                         rill::straggler::linear_mean{},
                                         rill::aggregate::add{},
                                         model};
        work(replica);
    });
}

TEST_CASE("parameter_server: a steady-state step allocates a question to each server") {
    steady::check(
        [](auto& net, auto& model, auto work) {
            rill::parameter_server replica{
                net, {.servers = 1}, rill::straggler::bounded{1}, rill::aggregate::add{}, model};
            work(replica);
        },
        3);
    steady::check(
        [](auto& net, auto& model, auto work) {
            rill::parameter_server replica{
                net, {.servers = 2, .dedicated = false}, rill::straggler::bounded{1}, rill::aggregate::add{}, model};
            work(replica);
        },
        8);
}

TEST_CASE("pair_averaging: a steady-state step allocates nothing") {
    steady::check([](auto& net, auto& model, auto work) {
        rill::pair_averaging replica{net, rill::topology::bipartite{}, rill::aggregate::add{}, model};
        work(replica);
    });
}

TEST_CASE("local_steps: a steady-state step allocates nothing") {
    const auto inner = rill::aggregate::add{};
    steady::check([&](auto& net, auto& model, auto work) {
        rill::group workers{net, rill::topology::ring{}};
        rill::partial_all_reduce rounds{workers,
                                        rill::straggler::all_ready{},
                                        rill::straggler::in_step{},
                                        rill::straggler::plain_sum{},
                                        rill::aggregate::add{},
                                        model};
        rill::local_steps replica{rounds, {.every = 4}, inner, model};
        work(replica);
    });
    steady::check([&](auto& net, auto& model, auto work) {
        rill::pair_averaging pairs{net, rill::topology::bipartite{}, rill::aggregate::add{}, model};
        rill::local_steps replica{pairs, {.every = 1}, inner, model};
        work(replica);
    });
}

#endif
