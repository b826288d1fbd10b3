#include <doctest/doctest.h>

#include <rill/kernel/merge_k.hpp>

#include "samples.hpp"
#include "sparse_samples.hpp"

using namespace rill;
using namespace rill::kernel_tests;

namespace {

template <class T, class Index, class Merge>
sparse<T, Index> merged(const std::vector<sparse<T, Index>>& inputs, Merge merge) {
    std::vector<sparse_view<T, Index>> views;
    std::size_t most = 0;
    for (const auto& input : inputs) {
        views.push_back(input.view());
        most += input.indices.size();
    }
    sparse<T, Index> out{std::vector<Index>(most), std::vector<T>(most)};
    kernel::merge_scratch scratch;
    const std::size_t count = merge(std::span<const sparse_view<T, Index>>(views), out.indices, out.values, scratch);
    out.indices.resize(count);
    out.values.resize(count);
    return out;
}

}  // namespace

TEST_CASE_TEMPLATE("every algorithm for merging k vectors gives the bits of the left fold", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    for (std::size_t count : {0U, 1U, 2U, 3U, 5U, 8U})
        for (float density : {0.0005F, 0.02F, 0.5F}) {
            std::vector<sparse<T, Index>> inputs;
            for (std::size_t k = 0; k < count; ++k) {
                const std::size_t begin = k % 3 == 2 ? 30000 : 0;
                inputs.push_back(k == 4 ? sparse<T, Index>{}
                                        : random_sparse<T, Index>(k, begin, begin + 20000, density));
            }
            const auto expected = naive_merge(inputs, left_heavy);
            CHECK(merged(inputs, [](auto in, auto& i, auto& v, auto& scratch) {
                      return kernel::merge_k<T, Index>(in, i, v, left_heavy, scratch);
                  }) == expected);
            CHECK(merged(inputs, [](auto in, auto& i, auto& v, auto& scratch) {
                      return kernel::detail::merge_tiles<T, Index>(in, i.data(), v.data(), left_heavy, scratch);
                  }) == expected);
            CHECK(merged(inputs, [](auto in, auto& i, auto& v, auto& scratch) {
                      return kernel::detail::merge_in_turn<T, Index>(in, i.data(), v.data(), left_heavy, scratch);
                  }) == expected);
        }
}

TEST_CASE("tiles reach the highest index, and -0.0 stays -0.0") {
    const std::vector<sparse<float, std::uint32_t>> inputs(
        3, {{0, 16383, 16384, 0xFFFFFFFEU, 0xFFFFFFFFU}, {-0.0F, 1, 2, 3, -0.0F}});
    const auto add = [](float a, float b) { return a + b; };
    CHECK(merged(inputs, [&](auto in, auto& i, auto& v, auto& scratch) {
              return kernel::detail::merge_tiles<float, std::uint32_t>(in, i.data(), v.data(), add, scratch);
          }) == sparse<float, std::uint32_t>{inputs[0].indices, {-0.0F, 3, 6, 9, -0.0F}});
}

TEST_CASE("the chosen algorithm depends on the density") {
    const auto sparse_one = random_sparse<float, std::uint32_t>(1, 0, 20000, 0.001F);
    const auto dense_one = random_sparse<float, std::uint32_t>(1, 0, 20000, 0.1F);
    const std::vector<sparse_view<float, std::uint32_t>> few(4, sparse_one.view()), many(4, dense_one.view());
    CHECK(!kernel::detail::tiles_pay<float, std::uint32_t, addition>(few));
    CHECK(kernel::detail::tiles_pay<float, std::uint32_t, addition>(many));
}
