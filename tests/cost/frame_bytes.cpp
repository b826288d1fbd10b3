#include <rill/cost/frame_bytes.hpp>

#include <rill/core/arena.hpp>
#include <rill/core/random.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace rill;

struct sample {
    std::size_t size = 0;
    std::vector<std::uint32_t> indices{};
    std::vector<float> values{};

    sample(std::size_t count, std::size_t of) : size(of), values(count, 1.5F) {
        // Selection sampling by a generator of its own, independent of the one under test.
        random_sequence random(random_key{7});
        for (std::size_t i = 0; i < of && indices.size() < count; ++i)
            if (random.below(of - i) < count - indices.size()) indices.push_back(static_cast<std::uint32_t>(i));
    }
    stream_view<float> view() const { return {{0, size}, sparse_view<float, std::uint32_t>{indices, values}}; }
};

std::uint64_t written(const stream_view<float>& view, const coding& codes) {
    arena memory;
    const wire::header head{.kind = operation::all_reduce, .dimension = view.range().size()};
    return coded_frame(head, view, codes, random_key{1}, memory).size();
}

constexpr value_coding all_values[] = {value_coding::raw, value_coding::bf16, value_coding::qsgd2, value_coding::qsgd4,
                                       value_coding::qsgd8};

}  // namespace

TEST_CASE("the predicted size of a stream's frame is the size that is written") {
    for (const std::size_t count : {0U, 1U, 129U, 5000U}) {
        const sample some(count, 60'000);
        for (const value_coding values : all_values) {
            const auto check = [&](index_coding indices) {
                const coding codes{values, indices, 100};
                CHECK(cost::frame_bytes(some.view(), codes) == written(some.view(), codes));
            };
            for (const index_coding indices : index_codings) check(indices);
            check(index_coding::smallest);
            const coding codes{.values = values, .bucket = 100};
            const stream_view<float> dense({0, count}, std::span<const float>(some.values));
            CHECK(cost::dense_frame_bytes<float>(count, codes) == written(dense, codes));
        }
    }
}

TEST_CASE("whole rows have the predicted size") {
    for (const std::size_t rows : {0U, 1U, 40U, 2000U}) {
        const sample some(rows, 5000);
        std::vector<std::uint32_t> indices;
        for (const std::uint32_t row : some.indices)
            for (std::uint32_t k = 0; k < 12; ++k) indices.push_back(12 * row + k);
        const std::vector<float> values(indices.size(), 1.0F);
        const segment range{0, 60'000};
        const stream_view<float> view(range, sparse_view<float, std::uint32_t>{indices, values});
        const coding codes{.indices = index_coding::whole_rows, .row = 12};
        CHECK(cost::frame_bytes(view, codes) == written(view, codes));
        CHECK(cost::sparse_frame_bytes<float, std::uint32_t>(indices.size(), range, codes) == written(view, codes));
    }
}

TEST_CASE("sizes predicted from the number of random coordinates are exact, except for gaps and Huffman's code") {
    for (const std::size_t count : {0U, 3U, 700U, 20'000U}) {
        const sample some(count, 150'000);
        const segment range{0, 150'000};
        for (const value_coding values : all_values)
            for (const index_coding indices : {index_coding::raw, index_coding::bitmap, index_coding::elias_fano}) {
                const coding codes{values, indices, 100};
                CHECK(cost::sparse_frame_bytes<float, std::uint32_t>(count, range, codes) ==
                      written(some.view(), codes));
            }
        for (const index_coding indices : {index_coding::packed_gaps, index_coding::huffman, index_coding::smallest}) {
            const auto expected =
                static_cast<double>(cost::sparse_frame_bytes<float, std::uint32_t>(count, range, {.indices = indices}));
            CHECK(expected ==
                  doctest::Approx(static_cast<double>(written(some.view(), {.indices = indices}))).epsilon(0.02));
        }
    }
}
