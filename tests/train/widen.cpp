#include <rill/train/widen.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {
std::vector<float> column(const dataset& data, std::size_t c) {
    std::vector<float> values;
    for (std::size_t r = 0; r < data.rows; ++r) values.push_back(data.row(r)[c]);
    return values;
}

std::vector<float> sorted(std::vector<float> values) {
    std::sort(values.begin(), values.end());
    return values;
}
}  // namespace

TEST_CASE("widen: columns, then products of two columns, then permuted columns") {
    const dataset data = random_dataset(50, 6, 3);
    const dataset wide = widen(data, {.products = 9, .probes = 20, .key = {7}});
    REQUIRE(wide.columns == 35);
    CHECK(wide.rows == 50);
    CHECK(wide.classes == 3);
    CHECK(wide.labels == data.labels);
    for (std::size_t c = 0; c < 6; ++c) CHECK(column(wide, c) == column(data, c));
    for (std::size_t c = 6; c < 15; ++c) {
        int factors = 0;
        for (std::size_t i = 0; i < 6; ++i)
            for (std::size_t j = 0; j < i; ++j) {
                bool all = true;
                for (std::size_t r = 0; r < 50; ++r) all = all && wide.row(r)[c] == data.row(r)[i] * data.row(r)[j];
                factors += all ? 1 : 0;
            }
        CHECK(factors == 1);
    }
    for (std::size_t c = 15; c < 35; ++c) {
        int sources = 0;
        for (std::size_t i = 0; i < 15; ++i) {
            CHECK(column(wide, c) != column(wide, i));
            sources += sorted(column(wide, c)) == sorted(column(wide, i)) ? 1 : 0;
        }
        CHECK(sources >= 1);  // two products may multiply the same pair
    }
}

TEST_CASE("widen: a function of the data and the key") {
    const dataset data = random_dataset(20, 4, 2);
    const widening how{.products = 3, .probes = 3, .key = {1}};
    CHECK(widen(data, how).features == widen(data, how).features);
    CHECK(widen(data, how).features != widen(data, {.products = 3, .probes = 3, .key = {2}}).features);
    CHECK(widen(data, {}).features == data.features);
    CHECK_THROWS_AS(widen(random_dataset(5, 1, 1), how), contract_violation);
}
