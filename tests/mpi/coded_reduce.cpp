#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

constexpr std::size_t points = 30;

/// The gradient of a point at one coordinate.
double gradient_of(std::size_t point, std::size_t coordinate) {
    return std::cos(static_cast<double>(point * 7 + coordinate));
}

/// Rounds on the workers of `tree`: in each round one child of each parent sleeps, another one than in the last round.
void check_rounds(rill::mpi::endpoint& net, const rill::topology::regular_tree& tree, std::size_t dimension) {
    const auto code = rill::gradient_code::cyclic_mds{}.bind(tree.width, 1);
    const rill::coded_allocation allocation(tree, code, points);
    rill::group workers{net, rill::topology::star{}, {.timeout = rill::seconds(60)}};
    rill::coded_reduce steps{workers, tree, code};
    std::vector<double> model(5, 1.0), own(dimension), gradient(dimension);
    std::uint64_t mine = 0;
    while (steps.next(model)) {
        ++mine;
        CHECK(model == std::vector<double>(5, static_cast<double>(steps.number())));
        own.assign(dimension, 0);
        for (const rill::data_share& share : allocation.shares_of(net.rank()))
            for (std::size_t point = share.first; point < share.last; ++point)
                for (std::size_t i = 0; i < dimension; ++i) own[i] += share.coefficient * gradient_of(point, i);
        if (net.rank() != 0 && (net.rank() - 1) % tree.width == static_cast<int>(steps.number()) % tree.width)
            net.sleep_until(net.now() + rill::milliseconds(10));
        const auto r = steps.reduce(own, gradient);
        if (!steps.is_root()) continue;
        double worst = 0;
        for (std::size_t i = 0; i < dimension; ++i) {
            double whole = 0;
            for (std::size_t point = 0; point < points; ++point) whole += gradient_of(point, i);
            worst = std::max(worst, std::abs(gradient[i] - whole));
        }
        CHECK(worst < 1e-9);
        CHECK(r.contributors >= tree.width - 1);
        model.assign(5, static_cast<double>(steps.number() + 1));
        if (steps.number() == 12) steps.end();
    }
    if (steps.is_root()) CHECK(mine == 12);
    CHECK(mine >= 1);
    barrier(workers);
}

}  // namespace

TEST_CASE("collectives: coded_reduce does without sleepers, with small and large messages") {
    for (const rill::topology::regular_tree& tree : {rill::topology::regular_tree{2, 1}, {3, 1}, {2, 2}}) {
        if (tree.size() > processes::count()) continue;
        for (const std::size_t dimension : {10U, 40'000U})
            processes::run(tree.size(), [&](auto& net) { check_rounds(net, tree, dimension); });
    }
}
