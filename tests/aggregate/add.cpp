#include <rill/aggregate/add.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/stream/stream_view.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

using rill::aggregate::add;
static_assert(rill::Update<add, double> && rill::Update<add, std::int32_t>);
static_assert(!rill::RankedUpdate<add, double>);

TEST_CASE("add: the fold is added, whatever the weight, dense or by entries") {
    const auto update = add{}.bind<std::int32_t>(4);
    std::vector<std::int32_t> model{1, 2, 3, 4};
    const std::vector<std::int32_t> fold{10, 20, 30, 40};
    update.apply(std::span(model), std::span(fold), 7.0, 3);
    CHECK(model == std::vector<std::int32_t>{11, 22, 33, 44});

    const std::vector<std::uint32_t> indices{1, 3};
    const std::vector<std::int32_t> values{5, -4};
    using view = rill::stream_view<std::int32_t>;
    update.apply(std::span(model), view({0, 4}, {indices, values}), 1.0, 4);
    CHECK(model == std::vector<std::int32_t>{11, 27, 33, 40});
    update.apply(std::span(model), view({0, 4}, fold), 1.0, 5);
    CHECK(model == std::vector<std::int32_t>{21, 47, 63, 80});
}
