// A steady-state step of a replica allocates nothing, but for a worker's question to each parameter server.
#include "../support/allocations.hpp"

#ifndef RILL_TEST_SANITIZED

#include <rill/aggregate/add.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/types.hpp>
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
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace steady {

using namespace rill::straggler;

constexpr int ranks = 4;
constexpr std::size_t dimension = 2000;
constexpr std::uint64_t begin = 60, window = 40, windows = 50;

/// Counts how often all ranks allocate in a step of rank 0: the least of several stretches of steps, since a rank that
/// the operating system holds up can fill a mailbox more than ever before. Ranks go on until a stretch has at most
/// `most` allocations in each step, or until there have been many stretches.
class counter {
  public:
    explicit counter(double most) : most_(most) {}

    template <class Net, class Replica>
    void run(rill::rank_t rank, Net& net, Replica& replica, std::vector<float>& model) {
        const std::vector<float> gradient(model.size(), 1);
        std::uint64_t step = 0;
        while (const auto held = replica.pull(model)) {
            while (replica.fate()) continue;
            if (rank == 0) count(step);
            if (done_) {
                replica.retire();
                continue;
            }
            net.compute(1);
            replica.push(gradient, *held);
            ++step;
        }
    }
    double per_step() const { return static_cast<double>(least_) / static_cast<double>(window); }

  private:
    void count(std::uint64_t step) {
        if (done_ || step < begin || (step - begin) % window != 0) return;
        if (step > begin) least_ = std::min(least_, all_allocations() - before_);
        done_ = per_step() <= most_ || step >= begin + windows * window;
        before_ = all_allocations();
    }

    double most_;
    unsigned long before_ = 0, least_ = ~0UL;
    std::atomic<bool> done_ = false;
};

/// A thread has no simulated work.
struct idle_thread {
    void compute(double) {}
};

/// `questions`: how many questions the ranks ask servers in a step of each. In the simulator all ranks have one cache
/// of message buffers. Each thread has one of its own; where threads send as many messages as they get on average only,
/// such a cache is empty now and then.
template <class Make>
void check(Make make, double questions = 0) {
    counter threads(questions + 0.5), simulated(questions);
    const auto first = std::vector<float>(dimension);
    rill::in_process::run(ranks, [&](auto& net) {
        std::vector<float> model = first;
        make(net, model, [&](auto& replica) {
            idle_thread own;
            threads.run(net.rank(), own, replica, model);
        });
    });
    const rill::simulated::network even{.latency = rill::microseconds(10),
                                        .computing = [](auto...) { return rill::milliseconds(1); }};
    rill::simulated::run(ranks, even, [&](auto& net) {
        std::vector<float> model = first;
        make(net, model, [&](auto& replica) { simulated.run(net.rank(), net, replica, model); });
    });
    CHECK(threads.per_step() < questions + 1);
    CHECK(simulated.per_step() == questions);
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
