#include <doctest/doctest.h>

#include <rill/kernel/mask.hpp>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

using namespace rill;

namespace {

template <class Index = std::uint32_t>
std::vector<Index> mask(std::uint64_t key, double density, segment universe) {
    aligned_vector<Index> out;
    const std::size_t count =
        kernel::random_mask<Index>(random_key{key}, kernel::geometric_skips(density), universe, out);
    CHECK(count == out.size());
    return {out.begin(), out.end()};
}

}  // namespace

TEST_CASE("the mask of a segment is the mask of the whole, restricted to the segment") {
    const auto whole = mask(3, 0.01, {0, 300000});
    for (const segment part : {segment{0, 1}, segment{70, 65536}, segment{65530, 65540}, segment{65536, 300000},
                               segment{200000, 200000}, segment{131071, 131073}}) {
        std::vector<std::uint32_t> expected;
        for (std::uint32_t i : whole)
            if (part.contains(i)) expected.push_back(i);
        CHECK(mask(3, 0.01, part) == expected);
    }
    const auto wide = mask<std::uint64_t>(3, 0.01, {0, 300000});
    CHECK(std::vector<std::uint64_t>(whole.begin(), whole.end()) == wide);
}

TEST_CASE("masks are appended to the output") {
    aligned_vector<std::uint32_t> out{4, 5};
    const kernel::geometric_skips skips(0.5);
    const std::size_t first = kernel::random_mask<std::uint32_t>(random_key{1}, skips, {0, 50}, out);
    const std::size_t second = kernel::random_mask<std::uint32_t>(random_key{1}, skips, {50, 100}, out);
    CHECK(out.size() == 2 + first + second);
    const auto whole = mask(1, 0.5, {0, 100});
    CHECK(std::vector<std::uint32_t>(out.begin() + 2, out.end()) == whole);
    CHECK(out[1] == 5);
}

TEST_CASE("densities 0 and 1 select none and all") {
    CHECK(mask(1, 0.0, {0, 1000}).empty());
    CHECK(mask(1, 1e-30, {0, 100000}).empty());
    const auto all = mask(1, 1.0, {65000, 66000});
    CHECK(all.size() == 1000);
    CHECK(all.front() == 65000);
    CHECK(all.back() == 65999);
    CHECK(mask<std::uint64_t>(1, 0.9, {~std::size_t{0} - 1000, ~std::size_t{0}}).size() > 800);
    CHECK_THROWS_AS(kernel::geometric_skips(1.5), contract_violation);
    CHECK_THROWS_AS(kernel::geometric_skips(std::nan("")), contract_violation);
}

TEST_CASE("golden indices") {
    CHECK(mask(42, 0.01, {0, 600}) == std::vector<std::uint32_t>{24, 33, 206});
    CHECK(mask(42, 0.0001, {0, 40000}) == std::vector<std::uint32_t>{1882, 10072, 16174});
}

TEST_CASE("golden masks") {
    // A hash of the mask for each density, at lengths that end within a block, and at the last coordinates of the type.
    const auto hash = [](const std::vector<std::uint32_t>& indices) {
        std::uint64_t h = indices.size();
        for (const std::uint32_t i : indices) h = mix64(h, i);
        return h;
    };
    constexpr double densities[] = {1e-12, 1e-5, 0.001, 0.03, 0.25, 0.5, 0.99};
    constexpr std::uint64_t golden[] = {0x0000000000000000, 0x0000000000000000, 0x7C0EEEC03F67A794, 0x0000000000000000,
                                        0x9748DB223D24F919, 0x6DF7BA31604AD966, 0x6759529E301FB68A, 0x542D85DAB142AE22,
                                        0x6FB4EC4C17EF5CDA, 0xFB7A8935112BDFB9, 0x6C6B1B69AE61C38E, 0x63F469A0194A1628,
                                        0xEAA530432A951205, 0xF330AA558DE03333};
    for (std::size_t i = 0; i < std::size(densities); ++i) {
        CHECK(hash(mask(i, densities[i], {0, 200000})) == golden[2 * i]);
        CHECK(hash(mask(i, densities[i], {0xFFFF7001, std::size_t{1} << 32})) == golden[2 * i + 1]);
    }
}

TEST_CASE("coordinates are selected independently with the given probability") {
    constexpr std::size_t n = 4000000;
    for (double density : {0.5, 0.1, 0.01, 0.001, 0.0001}) {
        const auto selected = mask(7, density, {0, n});
        const double count = static_cast<double>(selected.size());
        CHECK(std::abs(count - n * density) < 4 * std::sqrt(n * density * (1 - density)));
        std::size_t adjacent = 0, far = 0;
        const double far_gap = 2 / density;
        for (std::size_t i = 1; i < selected.size(); ++i) {
            adjacent += selected[i] == selected[i - 1] + 1 ? 1U : 0U;
            far += selected[i] - selected[i - 1] > static_cast<std::uint32_t>(far_gap) ? 1U : 0U;
        }
        const double p_far = std::pow(1 - density, far_gap);
        CHECK(std::abs(static_cast<double>(adjacent) - count * density) < 4 * std::sqrt(count * density) + 1);
        CHECK(std::abs(static_cast<double>(far) - count * p_far) < 4 * std::sqrt(count * p_far) + 1);
    }
}

TEST_CASE("different keys give independent masks") {
    const auto a = mask(1, 0.1, {0, 100000}), b = mask(2, 0.1, {0, 100000});
    std::size_t common = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        common += a[i] == b[j] ? 1U : 0U;
        a[i] <= b[j] ? ++i : ++j;
    }
    CHECK(std::abs(static_cast<double>(common) - 1000) < 4 * std::sqrt(1000.0));
}
