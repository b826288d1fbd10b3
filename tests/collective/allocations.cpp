// A steady-state step allocates nothing, on any rank.
#include "../support/allocations.hpp"

#ifndef RILL_TEST_SANITIZED

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/values.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/transport/fault_plan.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cases;

namespace {
/// The allocations of all ranks in ten steps, the least of several attempts: a rank that the operating system held up
/// can fill a mailbox more than ever before, but code that allocates in each step does so in every attempt.
template <class Group, class Step>
long least_allocations(Group& workers, const Step& step) {
    long least = -1;
    for (int times = 0; times < 5; ++times) {
        rill::barrier(workers);
        const unsigned long before = all_allocations();
        rill::barrier(workers);
        for (int i = 0; i < 10; ++i) step();
        rill::barrier(workers);
        const auto counted = static_cast<long>(all_allocations() - before);
        least = least < 0 || counted < least ? counted : least;
        rill::barrier(workers);
    }
    return least;
}

/// Counts the allocations of a steady-state step with blocking calls.
template <class Shape, class Run>
long steady_allocations(Shape shape, Run run) {
    long counted = -1;
    run([&](auto& net) {
        rill::group workers{net, shape};
        const std::size_t n = 1000;
        std::vector<float> gradient(n), update(n);
        for (std::size_t i = 0; i < n; ++i) gradient[i] = value<float>(net.rank(), i);
        using rill::compress::error_feedback, rill::compress::encoded, rill::compress::bucket_top_k;
        auto codec = error_feedback{bucket_top_k{.count = 8}}.bind(n);
        auto rounding = error_feedback{encoded{bucket_top_k{.count = 8}, rill::compress::bf16{}}}.bind(n);
        const auto step = [&] {
            rill::all_reduce(workers, gradient, update);
            rill::all_reduce(workers, gradient, update, codec);
            rill::all_reduce(workers, gradient, update, rounding);
        };
        // Mailboxes fill differently from step to step, so that the pools need some steps to reach their largest use.
        for (int i = 0; i < 300; ++i) step();
        if (const long least = least_allocations(workers, step); net.rank() == 0) counted = least;
    });
    return counted;
}

/// Counts the allocations of a steady-state step with three operations in flight.
template <class Shape, class Run>
long steady_allocations_in_flight(Shape shape, Run run) {
    long counted = -1;
    run([&](auto& net) {
        rill::group workers{net, shape};
        std::vector<float> a(1000, 1), b(3000, 1), c(3000), d(1000, 1);
        auto codec = rill::compress::error_feedback{rill::compress::bucket_top_k{.count = 8}}.bind(b.size());
        const auto step = [&] {
            rill::request requests[] = {rill::start_all_reduce(workers, a, a),
                                        rill::start_all_reduce(workers, b, c, codec),
                                        rill::start_all_reduce(workers, d, d)};
            for (auto& each : requests) each.get();
        };
        for (int i = 0; i < 300; ++i) step();
        if (const long least = least_allocations(workers, step); net.rank() == 0) counted = least;
    });
    return counted;
}
}  // namespace

TEST_CASE("a steady-state step with operations in flight allocates nothing") {
    constexpr rill::topology::split_allgather shape;
    CHECK(steady_allocations_in_flight(shape, [](auto body) { rill::simulated::run(4, {}, body); }) == 0);
    CHECK(steady_allocations_in_flight(shape, [](auto body) { rill::in_process::run(4, body); }) == 0);
}

TEST_CASE("a steady-state step allocates nothing") {
    for_each_topology([](auto shape) {
        CAPTURE(std::string(decltype(shape)::name));
        CHECK(steady_allocations(shape, [](auto body) { rill::simulated::run(4, {}, body); }) == 0);
        CHECK(steady_allocations(shape, [](auto body) { rill::in_process::run(4, body); }) == 0);
    });
}

TEST_CASE("a steady-state step on a tree with detours allocates nothing, with or without a silent link") {
    constexpr rill::topology::backup_tree shape;
    const rill::simulated::network cut{.faults = {{rill::faults::cut_between(1, 0).at(rill::milliseconds(1))}}};
    CHECK(steady_allocations(shape, [&](auto body) { rill::simulated::run(5, cut, body); }) == 0);
    // Of three threads each sends as many messages as it gets.
    CHECK(steady_allocations(shape, [](auto body) { rill::in_process::run(3, body); }) == 0);
}

#endif
