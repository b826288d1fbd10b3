// Push-sum: gossip over mixings whose columns sum to 1 and whose rows do not.
#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using rill::simulated::endpoint;
using rill::topology::directed;
using rill::topology::ring;

namespace {

constexpr std::size_t dimension = 30;
using models = std::vector<std::vector<double>>;

/// Each rank reaches each other, over edges that mostly have none back.
const directed graph{.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {0, 3}, {2, 0}, {2, 4}}};

models first_models(int ranks) {
    models all(static_cast<std::size_t>(ranks), std::vector<double>(dimension));
    std::uint64_t number = 0;
    for (auto& model : all)
        for (double& value : model) value = static_cast<double>(rill::mix64(++number) % 1000);
    return all;
}

double mean_at(const models& all, std::size_t i) {
    double sum = 0;
    for (const auto& model : all) sum += model[i];
    return sum / static_cast<double>(all.size());
}

struct pushed {
    models x, z;
    std::vector<double> weights;
};

template <class Run>
pushed push(Run run, const models& first, int rounds) {
    pushed seen{first, first, std::vector<double>(first.size())};
    run(static_cast<int>(first.size()), [&](auto& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, graph};
        const auto self = static_cast<std::size_t>(net.rank());
        CHECK(replica.weight() == 1);
        for (int round = 0; round < rounds; ++round) replica.mix(seen.x[self]);
        replica.debias(seen.x[self], seen.z[self]);
        seen.weights[self] = replica.weight();
    });
    return seen;
}

const auto simulated = [](int ranks, auto body) { rill::simulated::run(ranks, {}, body); };
const auto threads = [](int ranks, auto body) { rill::in_process::run(ranks, body); };

}  // namespace

TEST_CASE("push-sum: sums of models and of weights stay, and each estimate goes to the mean") {
    const models first = first_models(5);
    const pushed after = push(simulated, first, 60);
    double weights = 0, off = 0;
    for (std::size_t rank = 0; rank < 5; ++rank) {
        weights += after.weights[rank];
        off = std::max(off, std::abs(after.weights[rank] - 1));
        for (std::size_t i = 0; i < dimension; ++i) CHECK(after.z[rank][i] == doctest::Approx(mean_at(first, i)));
    }
    CHECK(weights == doctest::Approx(5).epsilon(1e-12));
    CHECK(off > 0.1);  // without weights the models would go elsewhere
    for (std::size_t i = 0; i < dimension; ++i) CHECK(mean_at(after.x, i) == doctest::Approx(mean_at(first, i)));
    CHECK(push(threads, first, 60).z == after.z);
}

TEST_CASE("push-sum: descent at the estimate finds the minimum of the sum") {
    // Rank r has (z - r)² / 2, so that the best is the mean of ranks.
    std::vector<double> ends(5);
    rill::simulated::run(5, {}, [&](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, graph};
        std::vector<double> x(1, 2.0 * net.rank()), z(1);
        for (int step = 0; step < 3000; ++step) {
            replica.debias(x, z);
            x[0] -= 1 / (step + 10.0) * (z[0] - net.rank());
            replica.mix(x);
        }
        replica.debias(x, x);
        ends[static_cast<std::size_t>(net.rank())] = x[0];
    });
    for (const double each : ends) CHECK(each == doctest::Approx(2).epsilon(0.01));
}

TEST_CASE("push-sum: over a doubly stochastic mixing the weight stays 1, and the estimate is the model") {
    rill::simulated::run(6, {}, [](endpoint& net) {
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, rill::topology::exponential{}};
        std::vector<float> model(7, 0.1F * static_cast<float>(net.rank())), z(7);
        for (int round = 0; round < 10; ++round) replica.mix(model);
        replica.debias(model, z);
        CHECK(z == model);
        CHECK(replica.weight() == 1);
    });
}

TEST_CASE("push-sum: a round that fails changes neither model nor weight") {
    const models first = first_models(5);
    models seen = first;
    std::vector<double> weights(5);
    std::vector<std::uint64_t> rounds(5);
    rill::simulated::network dies;
    dies.faults.faults = {rill::faults::kill(2).after(40)};
    try {
        rill::simulated::run(5, dies, [&](endpoint& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            rill::group workers{net, ring{}, {.timeout = rill::seconds(10)}};
            rill::gossip replica{workers, graph};
            try {
                while (true) replica.mix(seen[self]);
            } catch (const rill::error& failed) {
                CHECK(failed.culprit() == 2);
            }
            weights[self] = replica.weight();
            rounds[self] = replica.round();
        });
    } catch (const rill::error&) {  // of rank 2
    }
    for (std::size_t rank = 0; rank < 5; ++rank) {
        if (rank == 2) continue;
        CHECK(rounds[rank] > 3);
        CHECK(rounds[rank] < 40);
        const pushed expected = push(simulated, first, static_cast<int>(rounds[rank]));
        CHECK(seen[rank] == expected.x[rank]);
        CHECK(weights[rank] == expected.weights[rank]);
    }
}

TEST_CASE("push-sum: goes on from a number of rounds and a weight") {
    const models first = first_models(5);
    const pushed through = push(simulated, first, 9), half = push(simulated, first, 4);
    models resumed = half.x;
    rill::simulated::run(5, {}, [&](endpoint& net) {
        const auto self = static_cast<std::size_t>(net.rank());
        rill::group workers{net, ring{}};
        rill::gossip replica{workers, graph};
        replica.resume_at(4, half.weights[self]);
        for (int round = 4; round < 9; ++round) replica.mix(resumed[self]);
        CHECK(replica.weight() == through.weights[self]);
    });
    CHECK(resumed == through.x);
}
