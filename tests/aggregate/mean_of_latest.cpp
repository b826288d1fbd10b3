#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/concept/update.hpp>

#include <doctest/doctest.h>

#include <span>
#include <vector>

using rill::aggregate::mean_of_latest;
static_assert(rill::RankedUpdate<mean_of_latest, double>);
static_assert(!rill::Update<mean_of_latest, double>);

TEST_CASE("mean_of_latest: each rank counts once, with what it pushed last; others do not count yet") {
    auto update = mean_of_latest{}.bind<double>(2);
    std::vector<double> model{100, 100};
    const auto push = [&](int rank, std::vector<double> of_rank) {
        update.apply_of(rank, std::span(model), std::span<const double>(of_rank), 0);
        return model;
    };
    CHECK(push(3, {1, 2}) == std::vector<double>{1, 2});
    CHECK(push(0, {3, 6}) == std::vector<double>{2, 4});
    CHECK(push(3, {5, 0}) == std::vector<double>{4, 3});
    CHECK(push(1, {4, 3}) == std::vector<double>{4, 3});
    CHECK(push(0, {0, 0}) == std::vector<double>{3, 1});
}
