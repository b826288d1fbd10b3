#include <doctest/doctest.h>

#include <rill/core/addition.hpp>
#include <rill/kernel/merge.hpp>
#include <rill/kernel/merge_k.hpp>

#include "sparse_samples.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::kernel_tests;

namespace {

using pairs = sparse<float, std::uint32_t>;

/// Values whose sums show how they were added: zeros of both signs, a NaN, and values that are lost in rounding. There
/// is one NaN, and no two infinities whose sum is another: the compiler decides which of two NaNs a sum keeps.
float special(std::uint64_t i) {
    constexpr std::uint32_t specials[] = {0x00000000U, 0x80000000U, 0x7F800000U, 0x7FC00123U,
                                          0x00000001U, 0x3F800001U, 0x4B7FFFFFU, 0xBFFFFFFFU};
    return std::bit_cast<float>(specials[i % 8]);
}

pairs at(const std::vector<std::uint32_t>& indices, std::uint64_t seed) {
    pairs result{indices, {}};
    for (std::uint64_t i = 0; i < indices.size(); ++i)
        result.values.push_back(special((i * 2654435761U + seed * 40503U) >> 3U));
    return result;
}

std::vector<std::uint32_t> count_up(std::uint32_t first, std::uint32_t step, std::size_t count) {
    std::vector<std::uint32_t> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(first + step * static_cast<std::uint32_t>(i));
    return result;
}

/// Long stretches of indices that only one of the two vectors has, alternating with stretches that both have.
std::vector<std::uint32_t> runs(std::uint32_t length, std::uint32_t part, std::size_t count) {
    std::vector<std::uint32_t> result;
    for (std::uint32_t i = 0; result.size() < count; ++i)
        if (i / length % 3 == part || i / length % 3 == 2) result.push_back(i);
    return result;
}

pairs sum(const pairs& a, const pairs& b, bool portably) {
    pairs out{std::vector<std::uint32_t>(a.indices.size() + b.indices.size()), {}};
    out.values.resize(out.indices.size());
    addition add;
    std::size_t count = 0;
    if (portably) {
        kernel::detail::sparse_sink<float, std::uint32_t> sink{out.indices.data(), out.values.data()};
        kernel::detail::merge_portably(a.view(), b.view(), sink, add);
        count = sink.count;
    } else {
        count = kernel::merge<float, std::uint32_t>(a.view(), b.view(), out.indices, out.values, add);
    }
    out.indices.resize(count);
    out.values.resize(count);
    return out;
}

void check_sums(const std::vector<std::vector<std::uint32_t>>& indices) {
    for (std::size_t i = 0; i < indices.size(); ++i)
        for (std::size_t j = 0; j < indices.size(); ++j) {
            CAPTURE(i);
            CAPTURE(j);
            const pairs a = at(indices[i], i), b = at(indices[j], j + 1);
            const pairs portable = sum(a, b, true);
            CHECK(sum(a, b, false) == portable);
            CHECK(portable == naive_merge<float, std::uint32_t>({a, b}, addition{}));
        }
}

}  // namespace

TEST_CASE("sums have the bits of the portable path for inputs of every shape") {
    const std::uint32_t top = 0xFFFFFFFFU;
    check_sums({{},
                {7},
                count_up(0, 1, 200),
                count_up(0, 2, 200),
                count_up(1, 2, 200),
                count_up(100, 7, 170),
                count_up(1000, 1, 64),
                runs(5, 0, 300),
                runs(5, 1, 300),
                runs(40, 0, 300),
                runs(40, 1, 250),
                count_up(top - 199, 1, 200),
                count_up(top - 398, 2, 200),
                {0, 100, 399, top - 1, top}});
}

TEST_CASE("sums have the bits of the portable path at lengths around that of a register") {
    std::vector<std::vector<std::uint32_t>> indices;
    for (std::size_t length : {7U, 8U, 9U, 15U, 16U, 17U, 24U, 31U, 32U, 33U, 63U, 64U, 65U}) {
        indices.push_back(count_up(3, 1, length));
        indices.push_back(count_up(0, 3, length));
    }
    check_sums(indices);
}

TEST_CASE("a single value is copied, with the bits of a NaN; infinities of both signs make a NaN") {
    pairs a = at(count_up(0, 2, 100), 0), b = at(count_up(50, 1, 100), 0);
    const auto payload = std::bit_cast<float>(0x7FC00789U), infinity = std::bit_cast<float>(0x7F800000U);
    for (std::size_t i = 0; i < 25; ++i) a.values[i] = payload;      // below all of b
    for (std::size_t i = 1; i < 100; i += 2) b.values[i] = payload;  // between those of a
    for (std::size_t i = 25; i < 100; i += 3) a.values[i] = infinity;
    for (std::size_t i = 0; i < 100; i += 2) b.values[i] = -infinity;
    for (float& each : a.values)
        if (each != each && &each >= &a.values[25]) each = 1;
    CHECK(sum(a, b, false) == sum(a, b, true));
    CHECK(sum(a, b, false) == naive_merge<float, std::uint32_t>({a, b}, addition{}));
    CHECK(std::bit_cast<std::uint32_t>(sum(a, b, false).values[3]) == 0x7FC00789U);
}

TEST_CASE("random sums have the bits of the portable path") {
    for (std::uint64_t seed = 0; seed < 20; ++seed)
        for (float density : {0.01F, 0.2F, 0.9F}) {
            const auto a = random_sparse<float, std::uint32_t>(2 * seed, 0, 3000, density);
            const auto b = random_sparse<float, std::uint32_t>(2 * seed + 1, seed * 50, 3000, density / 2);
            CHECK(sum(a, b, false) == sum(a, b, true));
        }
}

TEST_CASE("sums of many vectors are added in ascending order of their ranks") {
    for (float density : {0.02F, 0.4F}) {
        std::vector<pairs> inputs;
        for (std::size_t k = 0; k < 8; ++k) {
            inputs.push_back(random_sparse<float, std::uint32_t>(k, 100 * k, 40000, density));
            for (std::size_t i = 0; i < inputs[k].values.size(); i += 3) inputs[k].values[i] = special(i + k);
        }
        std::vector<sparse_view<float, std::uint32_t>> views;
        std::size_t most = 0;
        for (const auto& input : inputs) {
            views.push_back(input.view());
            most += input.indices.size();
        }
        const auto expected = naive_merge(inputs, addition{});
        kernel::merge_scratch scratch;
        addition add;
        for (bool in_tiles : {false, true}) {
            CAPTURE(in_tiles);
            pairs out{std::vector<std::uint32_t>(most), std::vector<float>(most)};
            const std::span<const sparse_view<float, std::uint32_t>> all(views);
            const std::size_t count =
                in_tiles ? kernel::detail::merge_tiles(all, out.indices.data(), out.values.data(), add, scratch)
                         : kernel::detail::merge_in_turn(all, out.indices.data(), out.values.data(), add, scratch);
            out.indices.resize(count);
            out.values.resize(count);
            CHECK(out == expected);
        }
    }
}
