#include <rill/stream/fold.hpp>

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/aggregate/sum.hpp>

#include "samples.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <vector>

using namespace rill;
using namespace rill::stream_tests;

namespace {

/// For each coordinate, the left fold of the values that are present, in the order of the operands.
template <class T, class Index, class Fold>
std::map<std::size_t, T> oracle(const std::vector<stream<T, Index>>& operands, const Fold& fold) {
    std::map<std::size_t, T> result;
    const auto add = [&](std::size_t i, T value) {
        const auto [known, fresh] = result.try_emplace(i, value);
        if (!fresh) known->second = fold.fold(known->second, value);
    };
    for (const auto& s : operands)
        for (std::size_t j = 0; j < s.count(); ++j)
            add(s.is_dense() ? s.range().begin + j : static_cast<std::size_t>(s.indices()[j]), s.values()[j]);
    return result;
}

template <class T>
bool same_bits(T a, T b) {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T, class Index, class Fold>
void check_fold(const std::vector<stream<T, Index>>& operands, const Fold& fold, dense_switch when) {
    const segment range = operands.front().range();
    std::vector<stream_view<T, Index>> views;
    expected_union joined(range.size());
    bool any_dense = false;
    for (const auto& s : operands) {
        views.push_back(s.view());
        joined.add(s.count());
        any_dense = any_dense || s.is_dense();
    }
    fold_scratch<T, Index> scratch;
    stream<T, Index> result;
    const T neutral = fold.template identity<T>();
    const auto folded = [&](T a, T b) { return fold.fold(a, b); };
    fold_streams(std::span<const stream_view<T, Index>>(views), result, folded, neutral, when, scratch);

    const auto expected = oracle(operands, fold);
    REQUIRE(result.range() == range);
    CHECK(result.is_dense() == (any_dense || when.wants_dense<T, Index>(joined.count(), range)));
    REQUIRE(result.count() == (result.is_dense() ? range.size() : expected.size()));
    std::size_t wrong = 0;
    for (std::size_t j = 0; j < result.count(); ++j) {
        const std::size_t i = result.is_dense() ? range.begin + j : static_cast<std::size_t>(result.indices()[j]);
        const auto found = expected.find(i);
        const bool known = found != expected.end();
        if (!known && !result.is_dense()) ++wrong;
        if (known && !(same_bits(result.values()[j], found->second) ||
                       // Folded with a neutral element, -0 becomes +0.
                       (result.is_dense() && result.values()[j] == found->second && found->second == T{0})))
            ++wrong;
        if (!known && result.values()[j] != neutral) ++wrong;
    }
    CHECK(wrong == 0);
}

template <class T, class Index>
void check_folds(const std::vector<stream<T, Index>>& operands) {
    for (double factor : {0.0, 1.0, 1e9}) {
        CAPTURE(factor);
        check_fold(operands, aggregate::sum{}, {.factor = factor});
        check_fold(operands, aggregate::max{}, {.factor = factor});
        check_fold(operands, aggregate::min{}, {.factor = factor});
    }
}

template <class T, class Index>
std::vector<stream<T, Index>> with_densities(segment range, std::vector<float> densities) {
    std::vector<stream<T, Index>> operands;
    for (float density : densities) operands.push_back(sample<T, Index>(range, density, 20 + operands.size()));
    return operands;
}

}  // namespace

TEST_CASE_TEMPLATE("folds equal the left fold of the present values, bit for bit", Row, RILL_STREAM_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    for (segment range : {segment{0, 1}, segment{0, 130}, segment{700, 1201}}) {
        CAPTURE(range.size());
        const auto check = [&](std::vector<float> densities) {
            check_folds(with_densities<T, Index>(range, std::move(densities)));
        };
        check({0.1F});
        check({0.1F, 0.1F});
        check({0.0F, 0.3F});
        check({0.1F, 1.0F});
        check({1.0F, 0.1F});
        check({1.0F, 1.0F});
        check({0.02F, 0.5F, 0.1F});
        check({0.1F, 1.0F, 0.3F, 1.0F});
        check({0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F});
    }
}

TEST_CASE("disjoint streams are concatenated, in any order") {
    stream<float> low(100), high(100);
    for (std::size_t i = 0; i < 5; ++i) low.push_back(i, 1.0F + static_cast<float>(i));
    for (std::size_t i = 50; i < 60; ++i) high.push_back(i, -1.0F);
    check_folds<float, std::uint32_t>({low, high});
    check_folds<float, std::uint32_t>({high, low});
}

TEST_CASE("the form depends on the counts, by the size of what they are expected to have together") {
    // Of 90: 45 entries of a float and a 32-bit index are as large as the dense form, 60 of a double, 30 with 64 bits.
    const auto form = [](auto s, std::size_t first, std::size_t second, const coding& codes = {}) {
        using sample_stream = decltype(s);
        using T = typename sample_stream::value_type;
        using Index = typename sample_stream::index_type;
        sample_stream a(90), b(90), result;
        for (std::size_t i = 0; i < first; ++i) a.push_back(i, T{1});
        for (std::size_t i = 0; i < second; ++i) b.push_back(i, T{1});
        const stream_view<T, Index> views[] = {a.view(), b.view()};
        fold_scratch<T, Index> scratch;
        fold_streams(
            std::span<const stream_view<T, Index>>(views), result, [](T x, T y) { return x + y; }, T{0}, {}, scratch,
            serial{}, codes);
        return result.is_dense() ? "dense" : "sparse";
    };
    CHECK(form(stream<float>{}, 26, 27) == "sparse");                 // 90 (1 - 64/90 · 63/90) = 45.2
    CHECK(form(stream<float>{}, 27, 28) == "dense");                  // 46.6, though the union has only 28 entries
    CHECK(form(stream<double>{}, 38, 38) == "sparse");                // 60.0
    CHECK(form(stream<double>{}, 38, 39) == "dense");                 // 60.5
    CHECK(form(stream<float, std::uint64_t>{}, 16, 17) == "sparse");  // 30.0
    CHECK(form(stream<float, std::uint64_t>{}, 17, 17) == "dense");   // 30.8
    // Coded indices take about a bit per coordinate, so that the sparse form is smaller for longer.
    const coding coded{.indices = index_coding::elias_fano};
    CHECK(form(stream<float>{}, 70, 70, coded) == "sparse");  // 85.6 · 4 + 12 bytes, not 360
    CHECK(form(stream<float>{}, 80, 80, coded) == "dense");   // 88.9 · 4 + 12 bytes
    const coding rounded{.values = value_coding::qsgd4, .indices = index_coding::elias_fano};
    CHECK(form(stream<float>{}, 40, 40, rounded) == "sparse");  // 62.2 / 2 + 12 bytes, not 45
    CHECK(form(stream<float>{}, 50, 50, rounded) == "dense");   // 72.2 / 2 + 12 bytes
}

TEST_CASE("all operands of a fold must have the same range") {
    const auto a = sample<float, std::uint32_t>({0, 10}, 0.5F, 1);
    const auto b = sample<float, std::uint32_t>({0, 11}, 0.5F, 1);
    const stream_view<float> views[] = {a.view(), b.view()};
    stream<float> result;
    fold_scratch<float, std::uint32_t> scratch;
    const auto fold = [&](std::span<const stream_view<float>> operands) {
        fold_streams(
            operands, result, [](float x, float y) { return x + y; }, 0.0F, {}, scratch);
    };
    CHECK_THROWS_AS(fold(views), contract_violation);
    CHECK_THROWS_AS(fold({}), contract_violation);
}
