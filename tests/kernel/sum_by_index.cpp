#include <rill/kernel/sum_by_index.hpp>

#include <rill/core/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

using namespace rill;

namespace {

template <class T, class Index>
void check_sums(std::size_t count, std::uint64_t bound, Index first) {
    CAPTURE(count);
    CAPTURE(bound);
    random_sequence random(random_key{count + bound});
    std::vector<kernel::index_value<T, Index>> entries;
    std::map<Index, T> expected;
    for (std::size_t i = 0; i < count; ++i) {
        const auto index = static_cast<Index>(first + static_cast<Index>(random.below(bound)));
        const T value = static_cast<T>(random.uniform()) - T{0.5};
        entries.push_back({index, value});
        if (const auto [at, is_new] = expected.emplace(index, value); !is_new) at->second += value;
    }
    aligned_vector<kernel::index_value<T, Index>> scratch;
    std::vector<Index> indices(count);
    std::vector<T> values(count);
    const std::size_t sums =
        kernel::sum_by_index(std::span(entries), scratch, std::span<Index>(indices), std::span<T>(values));
    REQUIRE(sums == expected.size());
    std::size_t i = 0;
    for (const auto& [index, sum] : expected) {
        CHECK(indices[i] == index);
        CHECK(values[i++] == sum);  // added in the same order: the same bits
    }
}

}  // namespace

TEST_CASE_TEMPLATE("sum_by_index: the sums in ascending order, added in the order of the entries", T, float, double) {
    for (const std::size_t count : {0U, 1U, 2U, 300U})
        for (const std::uint64_t bound : {1U, 2U, 100U, 70'000U, 1U << 25}) {
            check_sums<T, std::uint32_t>(count, bound, 0);
            check_sums<T, std::uint64_t>(count, bound, 0);
        }
    check_sums<T, std::uint32_t>(50, 30, std::numeric_limits<std::uint32_t>::max() - 29);
    check_sums<T, std::uint64_t>(50, 40, (std::uint64_t{1} << 40) - 20);
}

TEST_CASE("sum_by_index: a lone -0 becomes 0, as in a sum into a dense vector") {
    std::vector<kernel::index_value<float, std::uint32_t>> entries{{4, -0.0F}, {7, -0.0F}, {7, -0.0F}, {9, -1}};
    aligned_vector<kernel::index_value<float, std::uint32_t>> scratch;
    std::vector<std::uint32_t> indices(4);
    std::vector<float> values(4);
    REQUIRE(kernel::sum_by_index(std::span(entries), scratch, std::span(indices), std::span(values)) == 3);
    CHECK(!std::signbit(values[0]));
    CHECK(!std::signbit(values[1]));
    CHECK(values[2] == -1);
}
