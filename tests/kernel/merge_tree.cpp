#include <doctest/doctest.h>

#include <rill/core/addition.hpp>
#include <rill/core/random.hpp>
#include <rill/kernel/merge_k.hpp>

#include "samples.hpp"
#include "sparse_samples.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

using namespace rill;
using namespace rill::kernel_tests;
using kernel::detail::plain_runs, kernel::detail::runs_for, kernel::detail::merge_by_tree;

namespace {

using pairs = sparse<float, std::uint32_t>;

template <class Runs, class T, class Index, class Fold>
sparse<T, Index> merged(const std::vector<sparse<T, Index>>& inputs, Fold fold) {
    std::vector<sparse_view<T, Index>> views;
    std::size_t most = 0;
    for (const auto& input : inputs) {
        views.push_back(input.view());
        most += input.indices.size();
    }
    // Memory after the room for the result must not be written.
    sparse<T, Index> out{std::vector<Index>(most + 16, Index{77}), std::vector<T>(most + 16, T{77})};
    kernel::merge_scratch scratch;
    const std::size_t count =
        merge_by_tree<T, Index, Fold, Runs>(views, out.indices.data(), out.values.data(), fold, scratch);
    CHECK(std::count(out.indices.begin() + static_cast<std::ptrdiff_t>(most), out.indices.end(), Index{77}) == 16);
    CHECK(std::count(out.values.begin() + static_cast<std::ptrdiff_t>(most), out.values.end(), T{77}) == 16);
    out.indices.resize(count);
    out.values.resize(count);
    return out;
}

/// Sums of floats use intrinsics where the machine has them; checks these and the portable path.
void check_sum(const std::vector<pairs>& inputs) {
    const auto expected = naive_merge(inputs, addition{});
    CHECK(merged<plain_runs<float, std::uint32_t>>(inputs, addition{}) == expected);
    CHECK(merged<runs_for<float, std::uint32_t, addition>::type>(inputs, addition{}) == expected);
}

/// The first skip of eight equal inputs passes 16 stretches, the second one the rest.
template <class Runs>
void check_skips(const pairs& input) {
    const std::vector inputs(8, input.view());
    std::vector<sparse_view<float, std::uint32_t>> views(inputs.size());
    buffer cursors, entries;
    kernel::detail::merge_tree<Runs, float, std::uint32_t> tree(inputs, views, cursors, entries);
    constexpr std::size_t skipped = 16 * decltype(tree)::stretch / 8;
    REQUIRE(input.indices.size() < 2 * skipped);
    tree.skip(16);
    for (const auto& view : views) CHECK(view.count() == skipped);
    tree.skip(16);
    for (const auto& view : views) CHECK(view.count() == input.indices.size() - skipped);
}

/// Coordinates a few dozen apart, each in one of the inputs, or, every fourth time, in `together` of them.
std::vector<pairs> colliding(std::size_t ways, std::size_t together, std::size_t coordinates) {
    constexpr float values[] = {1e8F, -1e8F, 1, 3e-8F, 0.1F, -0.0F, 16777216, -7};
    std::vector<pairs> inputs(ways);
    random_sequence random(random_key{together});
    std::uint32_t index = 0;
    for (std::size_t i = 0; i < coordinates; ++i) {
        index += 1 + static_cast<std::uint32_t>(random.below(50));
        const std::size_t due = i % 4 == 0 ? together : 1, first = random.below(static_cast<std::uint32_t>(ways));
        for (std::size_t k = 0; k < due; ++k) {
            pairs& to = inputs[(first + k * 3) %
                               ways];  // 3 and 8 have no common divisor, so that each input is chosen at most once
            to.indices.push_back(index);
            to.values.push_back(values[random.below(8)]);
        }
    }
    return inputs;
}

}  // namespace

TEST_CASE("entries of three to eight vectors are added in ascending order of their ranks") {
    for (std::size_t together = 2; together <= 8; ++together) {
        CAPTURE(together);
        const auto inputs = colliding(8, together, 3000);
        check_sum(inputs);
        auto turned = inputs;
        std::reverse(turned.begin(), turned.end());
        CHECK((together == 2 || naive_merge(inputs, addition{}) != naive_merge(turned, addition{})));
    }
}

TEST_CASE("any number of vectors") {
    for (std::size_t ways : {1U, 2U, 4U, 5U, 7U, 13U, 70U}) {
        CAPTURE(ways);
        check_sum(colliding(ways, std::min<std::size_t>(ways, 2), 4000));
    }
}

TEST_CASE_TEMPLATE("merging stretch by stretch gives the bits of the left fold", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    for (float density : {0.001F, 0.15F, 0.5F}) {
        std::vector<sparse<T, Index>> inputs;
        for (std::size_t k = 0; k < 6; ++k) {
            const std::size_t begin = k % 3 == 2 ? 9000 : 0;
            inputs.push_back(k == 4 ? sparse<T, Index>{} : random_sparse<T, Index>(k, begin, begin + 12000, density));
        }
        const auto highest = [](T a, T b) { return std::max(a, b); };
        CHECK(merged<plain_runs<T, Index>>(inputs, left_heavy) == naive_merge(inputs, left_heavy));
        CHECK(merged<plain_runs<T, Index>>(inputs, highest) == naive_merge(inputs, highest));
    }
}

TEST_CASE("equal, disjoint and empty vectors, and one that is much longer than the others") {
    const auto one = random_sparse<float, std::uint32_t>(1, 0, 9000, 0.5F);
    check_sum(std::vector<pairs>(8, one));
    check_sum(std::vector<pairs>(4));
    std::vector<pairs> disjoint, unequal(5);
    for (std::size_t k = 0; k < 5; ++k)
        disjoint.push_back(random_sparse<float, std::uint32_t>(k, 10000 * (4 - k), 10000 * (5 - k), 0.2F));
    check_sum(disjoint);
    unequal[2] = one;
    unequal[4] = {{4000}, {0.25F}};
    check_sum(unequal);
}

TEST_CASE("dense clusters, short and long, among sparse entries") {
    constexpr struct {
        std::size_t end;
        float density;
    } pieces[] = {{100'000, 0.02F}, {110'000, 0.9F}, {900'000, 0.04F}, {980'000, 0.7F}, {1'000'000, 0.01F}};
    std::vector<pairs> inputs(8);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        std::size_t begin = 0;
        for (const auto& [end, density] : pieces) {
            const auto piece = random_sparse<float, std::uint32_t>(k, begin, end, density);
            inputs[k].indices.insert(inputs[k].indices.end(), piece.indices.begin(), piece.indices.end());
            inputs[k].values.insert(inputs[k].values.end(), piece.values.begin(), piece.values.end());
            begin = end;
        }
    }
    check_sum(inputs);
}

TEST_CASE("exactly as many stretches are skipped as asked for, however far apart their indices are") {
    pairs far;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        far.indices.push_back(i * 200'000);
        far.values.push_back(1);
    }
    check_skips<plain_runs<float, std::uint32_t>>(far);
    check_skips<runs_for<float, std::uint32_t, addition>::type>(far);
}

TEST_CASE("the lowest and the highest possible index, far from each other") {
    constexpr std::uint32_t top = std::numeric_limits<std::uint32_t>::max();
    const pairs ends{{0, 1, 1U << 29U, 1U << 31U, top - 1, top}, {1, 2, 3, 4, 5, 6}};
    const pairs last{{top}, {1e8F}}, top_two{{top - 1, top}, {0.5F, -1e8F}}, none{};
    check_sum({ends, last, none, top_two, ends, ends});
    check_sum({last, last, last, last});
    const sparse<double, std::uint64_t> high{{0, std::numeric_limits<std::uint64_t>::max()}, {0.1, 0.2}};
    const std::vector<sparse<double, std::uint64_t>> inputs(5, high);
    CHECK(merged<plain_runs<double, std::uint64_t>>(inputs, addition{}) == naive_merge(inputs, addition{}));
}

TEST_CASE("a single value is copied, with the bits of a NaN; -0.0 and infinities stay") {
    auto inputs = colliding(8, 3, 2000);
    const float infinity = std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < inputs[0].values.size(); i += 5) inputs[0].values[i] = infinity;
    for (std::size_t i = 0; i < inputs[5].values.size(); i += 7)
        inputs[5].values[i] = std::bit_cast<float>(0x7FC00789U);
    for (std::size_t i = 0; i < inputs[6].values.size(); i += 2) inputs[6].values[i] = -0.0F;
    check_sum(inputs);
    const std::vector<pairs> zeros(4, {{3, 9, 4000}, {-0.0F, -0.0F, -0.0F}});
    check_sum(zeros);
}
