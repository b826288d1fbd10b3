#include <rill/compress/row_top_k.hpp>

#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

using namespace rill;
using compress::row_top_k;
using compress_tests::gradient;

TEST_CASE("row_top_k sends the rows of largest norm, each as a whole") {
    const std::vector<double> input{1, -5, 3, /**/ 0, 0, 6, /**/ 4, 4, 4, /**/ 0, 0, 0, /**/ 9};
    auto codec = row_top_k{.columns = 3, .count = 3}.bind<double, std::uint64_t>(13);
    const auto view = codec.encode(input);
    CHECK(std::vector(view.indices().begin(), view.indices().end()) ==
          std::vector<std::uint64_t>{3, 4, 5, 6, 7, 8, 12});
    CHECK(std::vector(view.values().begin(), view.values().end()) == std::vector<double>{0, 0, 6, 4, 4, 4, 9});
}

TEST_CASE_TEMPLATE("row_top_k chooses as a sort of all norms does, ties to the lower row", T, float, double,
                   std::int32_t, std::int64_t) {
    for (const std::size_t columns : {1U, 4U, 7U, 1000U})
        for (const std::size_t n : {1U, 13U, 1000U}) {
            const auto input = gradient<T>(n, columns + n);
            const std::size_t all = (n + columns - 1) / columns, kept = (all + 2) / 3;
            std::vector<std::pair<double, std::size_t>> order(all);  // by falling norm, then by row
            for (std::size_t i = 0; i < n; ++i) {
                order[i / columns].first -= static_cast<double>(input[i]) * static_cast<double>(input[i]);
                order[i / columns].second = i / columns;
            }
            std::sort(order.begin(), order.end());
            std::vector<bool> is_kept(all);
            for (std::size_t k = 0; k < kept; ++k) is_kept[order[k].second] = true;
            std::vector<std::uint32_t> expected;
            for (std::size_t i = 0; i < n; ++i)
                if (is_kept[i / columns]) expected.push_back(static_cast<std::uint32_t>(i));
            auto codec = row_top_k{.columns = columns, .density = 1.0 / 3}.template bind<T>(n);
            const auto view = codec.encode(input);
            CHECK(std::vector(view.indices().begin(), view.indices().end()) == expected);
            for (std::size_t e = 0; e < expected.size(); ++e)
                if (view.values()[e] != input[expected[e]]) FAIL("another value");
        }
}

TEST_CASE("row_top_k refuses invalid options, and names the coordinate of a NaN") {
    CHECK_THROWS_AS(row_top_k{}.bind(10), contract_violation);
    CHECK_THROWS_AS((row_top_k{.columns = 0, .count = 1}.bind(10)), contract_violation);
    CHECK_THROWS_AS((row_top_k{.columns = 2, .density = 1.5}.bind(10)), contract_violation);
    auto codec = row_top_k{.columns = 4, .count = 1}.bind(10);
    std::vector<float> input(10, 1.0F);
    input[8] = std::numeric_limits<float>::infinity();
    CHECK(codec.encode(input).indices()[0] == 8);
    input[9] = NAN;
    CHECK_THROWS_WITH_AS(codec.encode(input), "rill: coordinate 9 is NaN", invalid_value);
    CHECK(row_top_k{.columns = 4, .count = 99}.bind(10).encode(std::vector<float>(10, 1.0F)).count() == 10);
}

TEST_CASE("row_top_k with error feedback sends whole rows, and keeps the others") {
    constexpr std::size_t n = 500, columns = 7;
    const auto check = [&](auto indices) {
        std::vector<std::vector<float>> sums(3);
        simulated::run(3, {}, [&](auto& net) {
            const auto rank = static_cast<std::size_t>(net.rank());
            group workers{net, topology::split_allgather{}};
            auto codec = compress::error_feedback{
                compress::encoded{
                    row_top_k{.columns = columns, .density = 0.1}, compress::raw{},
                    indices}}.bind(n);
            std::vector<float> sum(n);
            for (std::uint64_t step = 0; step < 5; ++step) {
                const auto mine = gradient<float>(n, 10 * step + rank);
                all_reduce(workers, mine, sum, codec, aggregate::sum{});
                sums[rank].insert(sums[rank].end(), sum.begin(), sum.end());
            }
            const auto residual = codec.residual();
            CHECK(std::count(residual.begin(), residual.end(), 0.0F) >= 8 * columns - columns);
        });
        CHECK(sums[0] == sums[1]);
        CHECK(sums[0] == sums[2]);
        return sums[0];
    };
    CHECK(check(compress::whole_rows{columns}) == check(compress::raw_indices{}));
}
