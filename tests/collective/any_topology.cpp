#include <rill/topology/any.hpp>

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "topologies.hpp"

#include <cstddef>
#include <vector>

namespace {

using namespace rill;

/// What each rank of a simulated network gets from `all_reduce` and the root from `reduce`, in values that round.
template <class Shape>
std::vector<std::vector<float>> results(int ranks, const Shape& shape) {
    std::vector<std::vector<float>> all(static_cast<std::size_t>(ranks) + 1, std::vector<float>(23));
    simulated::run(ranks, {}, [&](simulated::endpoint& self) {
        group workers{self, shape, {.timeout = seconds(10)}};
        std::vector<float> mine;
        for (std::size_t i = 0; i < 23; ++i)
            mine.push_back(1.0F / static_cast<float>(3 * i + 7 * static_cast<std::size_t>(self.rank()) + 1));
        std::vector<float> rooted(23);
        all_reduce(workers, mine, all[static_cast<std::size_t>(self.rank())]);
        reduce(workers, mine, rooted, self.size() - 1);
        if (self.rank() == self.size() - 1) all.back() = rooted;
    });
    return all;
}

}  // namespace

TEST_CASE("a group over topology::any computes the bits of the shape that it holds") {
    cases::for_each_topology([](const auto& shape) {
        CAPTURE(shape.name);
        for (int ranks = 1; ranks <= 9; ++ranks) {
            CAPTURE(ranks);
            CHECK(results(ranks, topology::any{shape}) == results(ranks, shape));
        }
    });
}

TEST_CASE("ranks that share memory compute the same bits over topology::any") {
    std::vector<float> plain(1000), chosen(1000);
    in_process::run(3, [&](in_process::endpoint& self) {
        const std::vector<float> mine(1000, 1.0F / static_cast<float>(self.rank() + 3));
        std::vector<float> one(1000), other(1000);
        group direct{self, topology::split_allgather{}, {.timeout = seconds(10)}};
        all_reduce(direct, mine, one);
        group by_value{self, topology::any{topology::split_allgather{}}, {.timeout = seconds(10), .name = "any"}};
        all_reduce(by_value, mine, other);
        if (self.rank() == 0) plain = one, chosen = other;
    });
    CHECK(plain == chosen);
}

TEST_CASE("ranks that hold different topologies in topology::any are named") {
    CHECK_THROWS_AS(simulated::run(3, {},
                                   [](simulated::endpoint& self) {
                                       const topology::any odd = topology::star{}, usual = topology::ring{};
                                       group workers{self, self.rank() == 2 ? odd : usual, {.timeout = seconds(10)}};
                                   }),
                    mismatch);
}
