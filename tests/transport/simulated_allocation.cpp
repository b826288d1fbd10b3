#include "../support/allocations.hpp"

#ifndef RILL_TEST_SANITIZED

#include <rill/transport/delayed.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

using rill::deadline;

namespace {

/// Uses every function that a step may use once; `step` counts up.
template <class Net>
void take_step(Net& net, std::uint32_t step, typename Net::event& event, typename Net::template queue<int>& queue,
               const rill::buffer& lent, const std::vector<rill::rank_t>& all) {
    const rill::rank_t next = (net.rank() + 1) % net.size();
    const rill::channel on{.context = step, .tag = step};
    net.announce(5, {.number = step + 1});
    auto activity = net.spawn([&] {
        queue.push(1);
        event.wait(deadline::never);
    });
    auto sent = net.post(next, on, rill::byte_view(lent));
    net.receive(all, on, deadline::never).reset();
    sent.wait(deadline::never);
    net.inquire(next, 5, step + 1, deadline::never);
    queue.pop(deadline::never);
    event.set();
    activity.join();
    event.reset();
    net.receive(0, {1, 1}, net.now() + rill::microseconds(5));
}

/// The allocations of some later steps.
template <class Net>
unsigned long steady_allocations(Net& net) {
    typename Net::event event{net};
    typename Net::template queue<int> queue{net};
    const rill::buffer lent(100);
    const std::vector<rill::rank_t> all{0, 1, 2, 3};
    std::uint32_t step = 0;
    for (; step < rill::calls_remembered; ++step) take_step(net, step, event, queue, lent, all);
    const unsigned long before = allocations();
    for (; step < rill::calls_remembered + 30; ++step) take_step(net, step, event, queue, lent, all);
    return allocations() - before;
}

}  // namespace

TEST_CASE("simulated, subgroup, delayed and traced: a steady state allocates nothing") {
    std::vector<rill::trace_log> logs(4);
    rill::simulated::run(4, {.jitter = rill::microseconds(3)}, [&](auto& inner) {
        rill::traced traced{inner, logs[static_cast<std::size_t>(inner.rank())]};
        rill::subgroup group{traced, rill::view::all(traced)};
        rill::delayed delayed{group};
        const unsigned long allocated = steady_allocations(delayed);
        CHECK(allocated == 0);
    });
}

#endif
