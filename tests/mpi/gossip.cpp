#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace {

/// Models of whole numbers that can be halved 20 times keep their sum, and come together.
template <class Mixing>
void check_gossip(rill::mpi::endpoint& net, const Mixing& mixing, std::size_t dimension, double density) {
    CAPTURE(Mixing::name);
    rill::group workers{net, rill::topology::ring{}};
    rill::gossip replica{workers, mixing};
    auto mask = rill::compress::random_mask{.density = density}.bind<double>(dimension);
    std::vector<double> model(dimension), sum(dimension);
    for (std::size_t i = 0; i < dimension; ++i)
        model[i] = static_cast<double>((i + 17 * static_cast<std::size_t>(net.rank())) % 100 << 20U);
    rill::all_reduce(workers, model, sum);
    const std::vector<double> before = sum;
    for (int round = 0; round < 20; ++round) replica.mix(model, mask);
    rill::all_reduce(workers, model, sum);
    constexpr bool is_exact = !std::is_same_v<Mixing, rill::topology::ring_neighbours>;
    for (std::size_t i = 0; i < dimension; ++i) {
        if (is_exact ? sum[i] != before[i] : std::abs(sum[i] - before[i]) > 1) FAIL_CHECK("sum ", i, " differs");
        const double mean = before[i] / net.size();
        if (density == 1 && net.size() <= 4 && std::abs(model[i] - mean) > 1e-3 * (1 << 20) * 100)
            FAIL_CHECK("value ", i, " is far from the mean");
    }
}

}  // namespace

TEST_CASE("gossip: models keep their sum and come together") {
    rill::mpi::endpoint net{MPI_COMM_WORLD};
    for (const std::size_t dimension : {std::size_t{100}, std::size_t{300'000}}) {
        check_gossip(net, rill::topology::ring_neighbours{}, dimension, 1);
        check_gossip(net, rill::topology::exponential{}, dimension, 1);
        check_gossip(net, rill::topology::random_matching{}, dimension, 0.1);
    }
}

TEST_CASE("coordinated gossip: models keep their sum") {
    rill::mpi::endpoint net{MPI_COMM_WORLD};
    const bool can_train = net.activities_run_alone();
    for (const std::size_t dimension : {std::size_t{100}, std::size_t{300'000}}) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<double> model(dimension), before(dimension), after(dimension);
        for (std::size_t i = 0; i < dimension; ++i)
            model[i] = static_cast<double>((i + 17 * static_cast<std::size_t>(net.rank())) % 100 << 20U);
        rill::all_reduce(workers, model, before);
        {
            rill::gossip saps{workers, rill::topology::random_matching{},
                              rill::coordinated{.rounds = 20, .trains = can_train}};
            auto mask = rill::compress::random_mask{.density = 0.1}.bind<double>(dimension);
            std::size_t mixed = 0;
            while (saps.next()) mixed += saps.mix(model, mask).in.size() - 1;
            const int partners = net.size() - (can_train ? 1 : 2);
            if (net.rank() > 0 || can_train) CHECK((mixed > 0) == (partners > 0));
        }
        rill::all_reduce(workers, model, after);
        CHECK(after == before);
    }
}
