// A steady round of gossip allocates nothing, on any rank.
#include "../support/allocations.hpp"

#ifndef RILL_TEST_SANITIZED

#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

constexpr int ranks = 4;
constexpr std::size_t dimension = 5000;

/// The allocations of all ranks in ten rounds, the least of several attempts: masks differ in size, and a rank that the
/// operating system holds up can fill a mailbox more than ever before.
template <class Net, class Mix>
long steady_allocations(Net& net, const Mix& mixing) {
    rill::group workers{net, rill::topology::recursive_doubling{}};
    rill::gossip replica{workers, mixing};
    auto mask = rill::compress::random_mask{.density = 0.1}.bind(dimension);
    std::vector<float> model(dimension, static_cast<float>(net.rank()));
    const auto round = [&] {
        replica.mix(model);
        replica.mix(model, mask);
    };
    for (int i = 0; i < 200; ++i) round();
    long least = -1;
    for (int times = 0; times < 5; ++times) {
        rill::barrier(workers);
        const unsigned long before = all_allocations();
        rill::barrier(workers);
        for (int i = 0; i < 10; ++i) round();
        rill::barrier(workers);
        const auto counted = static_cast<long>(all_allocations() - before);
        least = least < 0 ? counted : std::min(least, counted);
        rill::barrier(workers);
    }
    return least;
}

/// The same with a coordinator. Its workers have no model in common to meet at, but each round begins for all at once.
template <class Net, class Mix>
long steady_coordinated_allocations(Net& net, const Mix& mixing) {
    rill::group workers{net, rill::topology::recursive_doubling{}};
    rill::gossip saps{workers, mixing, rill::coordinated{.rounds = 460}};
    auto mask = rill::compress::random_mask{.density = 0.1}.bind(dimension);
    std::vector<float> model(dimension, static_cast<float>(net.rank()));
    long least = -1;
    unsigned long before = 0;
    while (saps.next()) {
        if (const std::uint64_t round = saps.round(); round >= 300 && round % 20 == 0) {
            const unsigned long now = all_allocations();
            const auto counted = static_cast<long>(now - before);
            if (round > 300) least = least < 0 ? counted : std::min(least, counted);
            before = all_allocations();
        }
        saps.round() % 2 == 0 ? saps.mix(model) : saps.mix(model, mask);
    }
    return least;
}

template <class Run>
void check_coordinated(Run run) {
    long least = -1;
    run(ranks, [&](auto& net) {
        const long counted = steady_coordinated_allocations(net, rill::topology::random_matching{});
        if (net.rank() == 0) least = counted;
    });
    CHECK(least == 0);
}

template <class Mix>
void check(const Mix& mixing) {
    long threads = -1, simulated = -1;
    rill::in_process::run(ranks, [&](auto& net) {
        if (const long counted = steady_allocations(net, mixing); net.rank() == 0) threads = counted;
    });
    rill::simulated::run(ranks, {}, [&](auto& net) {
        if (const long counted = steady_allocations(net, mixing); net.rank() == 0) simulated = counted;
    });
    CHECK(threads == 0);
    CHECK(simulated == 0);
}

}  // namespace

TEST_CASE("gossip: steady rounds allocate nothing") {
    check(rill::topology::ring_neighbours{});
    check(rill::topology::random_matching{});
}

TEST_CASE("coordinated gossip: steady rounds allocate nothing, on workers and the coordinator") {
    check_coordinated([](int size, auto body) { rill::in_process::run(size, body); });
    check_coordinated([](int size, auto body) { rill::simulated::run(size, {}, body); });
}

#endif
