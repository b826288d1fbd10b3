#include <doctest/doctest.h>

#include <rill/kernel/fold.hpp>

#include "samples.hpp"

#include <cstring>

using namespace rill;
using namespace rill::kernel_tests;

namespace {
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
// Not associative, not commutative, and exact in integers.
constexpr auto halve_and_add = [](auto a, auto b) { return static_cast<decltype(a)>(a / 2 + b / 3); };
}  // namespace

TEST_CASE_TEMPLATE("dense folds are left folds in the order of the inputs", T, float, double, std::int32_t,
                   std::int64_t) {
    for (std::size_t n : {0U, 1U, 255U, 256U, 257U, 1000U})
        for (std::size_t count : {1U, 2U, 3U, 8U, 9U}) {
            std::vector<std::vector<T>> inputs;
            for (std::size_t k = 0; k < count; ++k) {
                inputs.push_back(samples<T>(n + k)[k % 2].values);
                inputs.back().resize(n);
            }
            std::vector<T> expected = inputs[0];
            for (std::size_t k = 1; k < count; ++k)
                for (std::size_t i = 0; i < n; ++i) expected[i] = halve_and_add(expected[i], inputs[k][i]);

            const std::vector<std::span<const T>> views(inputs.begin(), inputs.end());
            std::vector<T> out(n);
            kernel::fold_dense_k<T>(views, out, halve_and_add);
            CHECK(same_bits(out, expected));

            kernel::fold_dense_k<T>(views, inputs[count / 2], halve_and_add);  // in place
            CHECK(same_bits(inputs[count / 2], expected));
        }
}

TEST_CASE("fold_dense folds into its first argument") {
    std::vector<float> acc(300, 8.0F);
    const std::vector<float> x(300, 3.0F);
    kernel::fold_dense<float>(acc, x, [](float a, float b) { return a - b; });
    CHECK(acc == std::vector<float>(300, 5.0F));
}

TEST_CASE("fill sets every entry") {
    for (std::size_t n : {0U, 1U, 64U, 100U}) {
        std::vector<double> x(n, 1.0);
        kernel::fill<double>(x, -2.0);
        CHECK(x == std::vector<double>(n, -2.0));
    }
}

TEST_CASE("inputs of different length are a broken contract") {
    std::vector<float> a(4), b(5);
    CHECK_THROWS_AS((kernel::fold_dense<float>(a, b, [](float x, float) { return x; })), contract_violation);
    CHECK_THROWS_AS((kernel::fold_dense_k<float>({}, a, [](float x, float) { return x; })), contract_violation);
}
