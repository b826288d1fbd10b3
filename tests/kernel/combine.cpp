#include <rill/core/random.hpp>
#include <rill/kernel/combine.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <vector>

namespace {

template <class T>
void check_combinations(std::size_t size) {
    rill::random_sequence draw(rill::random_key{7}.derive(size));
    const auto any = [&] { return static_cast<T>(draw.below(2'000'001)) / T{1'000'003} - T{1}; };
    for (const std::size_t count : {0U, 1U, 2U, 5U, 13U}) {
        std::vector<std::vector<T>> inputs(count, std::vector<T>(size));
        std::vector<T> factors(count), out(size, T{9});
        std::vector<std::span<const T>> views;
        for (std::size_t k = 0; k < count; ++k) {
            factors[k] = any();
            for (T& x : inputs[k]) x = any();
            views.emplace_back(inputs[k]);
        }
        rill::kernel::combine_k<T>(views, factors, out);
        bool exact = true;
        for (std::size_t i = 0; i < size; ++i) {
            T expected{0};
            for (std::size_t k = 0; k < count; ++k) {
                volatile T product = factors[k] * inputs[k][i];
                expected = expected + product;
            }
            exact = exact && out[i] == expected;
        }
        CHECK(exact);
        if (count < 2) continue;
        const std::vector<T> apart = out;
        rill::kernel::combine_k<T>(views, factors, std::span<T>(inputs[1]));
        CHECK(inputs[1] == apart);
    }
}

}  // namespace

TEST_CASE("combine_k: each product and each sum is rounded, in order, in place or not") {
    for (const std::size_t size : {0U, 1U, 63U, 64U, 255U, 256U, 257U, 1000U}) {
        check_combinations<float>(size);
        check_combinations<double>(size);
    }
}

TEST_CASE("combine_k refuses inputs of other lengths, or without factors") {
    const std::vector<float> a(4), b(5);
    std::vector<float> out(4);
    const std::span<const float> inputs[] = {a, b};
    const float factors[] = {1, 1};
    CHECK_THROWS_AS(rill::kernel::combine_k<float>(inputs, factors, out), rill::contract_violation);
    CHECK_THROWS_AS(rill::kernel::combine_k<float>(std::span(inputs).first(1), factors, out), rill::contract_violation);
}
