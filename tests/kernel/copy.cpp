#include <doctest/doctest.h>

#include <rill/kernel/copy.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace rill;

TEST_CASE_TEMPLATE("a copy has every entry and touches nothing around it, whatever the size and address", T, float,
                   double, std::int32_t, std::int64_t) {
    const std::size_t large = kernel::detail::least_streamed_copy / sizeof(T);
    const std::size_t line = 64 / sizeof(T);
    std::vector<T> source(large + 3 * line);
    std::iota(source.begin(), source.end(), T{1});
    for (std::size_t n : {std::size_t{0}, std::size_t{1}, large - 1, large, large + 1, large + line + 1})
        for (std::size_t offset : {std::size_t{0}, std::size_t{1}, line - 1}) {
            CAPTURE(n);
            CAPTURE(offset);
            std::vector<T> target(source.size(), T{-1});
            kernel::copy<T>(std::span<const T>(source).subspan(1, n), std::span<T>(target).subspan(offset, n));
            CHECK(std::equal(target.begin() + static_cast<std::ptrdiff_t>(offset),
                             target.begin() + static_cast<std::ptrdiff_t>(offset + n), source.begin() + 1));
            CHECK(std::count(target.begin(), target.end(), T{-1}) == static_cast<std::ptrdiff_t>(target.size() - n));
        }
}

TEST_CASE("source and target of different lengths break the contract") {
    const std::vector<float> source(2);
    std::vector<float> target(3);
    CHECK_THROWS_AS(kernel::copy<float>(source, target), contract_violation);
}
