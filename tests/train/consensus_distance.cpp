#include <rill/train/consensus_distance.hpp>

#include <rill/collective/group.hpp>
#include <rill/core/contract.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/train/worker_range.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

using namespace rill;

TEST_CASE("consensus_distance: the distance from the mean of all models, and the mean") {
    simulated::run(3, {}, [](simulated::endpoint& net) {
        group workers{net, topology::recursive_doubling{}};
        const auto place = static_cast<float>(net.rank());
        const std::vector<float> model{place, 5, 2 * place, -1};  // 0, 1, 2 and 0, 2, 4: distances √5, 0, √5
        std::vector<float> mean(4);
        const double distance = train::consensus_distance(workers, std::span(model), std::span(mean));
        CHECK(distance == doctest::Approx(std::sqrt(10.0 / 3)));
        CHECK(mean == std::vector<float>{1, 5, 2, -1});
        CHECK_THROWS_AS(train::consensus_distance(workers, std::span(model), std::span(mean).first(3)),
                        contract_violation);
    });
}

TEST_CASE("consensus_distance: equal models, one rank, and no entries") {
    for (const int ranks : {1, 2})
        simulated::run(ranks, {}, [](simulated::endpoint& net) {
            group workers{net, topology::recursive_doubling{}};
            const std::vector<double> model{0.5, 3};
            std::vector<double> mean(2);
            CHECK(train::consensus_distance(workers, std::span(model), std::span(mean)) == 0);
            CHECK(mean == model);
            CHECK(train::consensus_distance(workers, std::span(model).first(0), std::span(mean).first(0)) == 0);
        });
}

TEST_CASE("range_of: the least, the mean and the greatest of the ranks' values") {
    simulated::run(4, {}, [](simulated::endpoint& net) {
        group workers{net, topology::recursive_doubling{}};
        CHECK(train::range_of(workers, net.rank() == 2 ? -7.0 : net.rank()) ==
              train::worker_range{.least = -7, .mean = -0.75, .greatest = 3});
        const double odd = net.rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
        const auto spoilt = train::range_of(workers, odd);
        CHECK(std::isnan(spoilt.least));
        CHECK(std::isnan(spoilt.mean));
        CHECK(std::isnan(spoilt.greatest));
    });
}
