#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

TEST_CASE("coordinated gossip: models keep their sum") {
    rill::mpi::endpoint net{MPI_COMM_WORLD};
    for (const std::size_t dimension : {std::size_t{100}, std::size_t{300'000}}) {
        rill::group workers{net, rill::topology::ring{}};
        auto mask = rill::compress::random_mask{.density = 0.1}.bind<double>(dimension);
        std::vector<double> model(dimension), before(dimension), after(dimension);
        for (std::size_t i = 0; i < dimension; ++i)
            model[i] = static_cast<double>((i + 17 * static_cast<std::size_t>(net.rank())) % 100 << 20U);
        rill::all_reduce(workers, model, before);
        const bool trains = net.activities_run_alone();
        int rounds = 0;
        {
            rill::gossip saps{workers, rill::topology::random_matching{},
                              rill::coordinated{.rounds = 20, .trains = trains}};
            for (; saps.next(); ++rounds) saps.mix(model, mask);
        }
        CHECK(rounds == (trains || net.rank() != 0 ? 20 : 0));
        rill::all_reduce(workers, model, after);
        CHECK(after == before);
    }
}
