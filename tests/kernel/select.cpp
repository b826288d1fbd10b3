#include <doctest/doctest.h>

#include <rill/kernel/select.hpp>

#include "samples.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace rill;
using namespace rill::kernel_tests;

namespace {

/// Blocks of 64 floats that are random, equal, tiny, or NaN.
std::vector<std::vector<float>> blocks() {
    std::vector<std::vector<float>> all;
    for (const auto& [name, x] : samples<float>(64)) all.push_back(x);
    using limits = std::numeric_limits<float>;
    for (const float v : {1.5F, limits::denorm_min(), -limits::denorm_min(), limits::infinity(), limits::quiet_NaN()})
        all.emplace_back(64, v);
    random_sequence random(random_key{3});
    for (const unsigned rare : {2U, 16U, 64U}) {
        all.emplace_back(64, -0.0F);
        for (float& v : all.back())
            if (random.below(rare) == 0) v = random.below(2) == 0 ? limits::denorm_min() : -2.0F;
    }
    return all;
}

/// Bounds at and around the magnitudes of a block.
std::vector<std::uint32_t> bounds_of(const std::vector<float>& x) {
    std::vector<std::uint32_t> all{0, 1, 0x7F800000, 0x7FFFFFFF, 0x80000000};
    for (std::size_t i = 0; i < x.size(); i += x.size() / 9)
        for (std::uint32_t more : {0U, 1U}) all.push_back(kernel::magnitude(x[i]) + more);
    return all;
}

/// Checks each step on a block against its definition, at every place of the output.
template <class Steps>
void check_steps(const std::vector<float>& x, std::uint32_t bound) {
    constexpr std::uint32_t first = 0xFFFFFF00U;
    std::uint64_t mask = 0;
    std::vector<std::uint32_t> keys, numbers, indices, large, small;
    for (std::uint32_t j = 0; j < 64; ++j) {
        keys.push_back(kernel::magnitude(x[j]));
        numbers.push_back(first + j);
        if (keys[j] <= bound) small.push_back(keys[j]);
        if (keys[j] < bound) continue;
        mask |= std::uint64_t{1} << j;
        indices.push_back(first + j);
        large.push_back(keys[j]);
    }
    CHECK(Steps::mask_at_least(x.data(), bound) == mask);
    CHECK(Steps::any_at_least(x.data(), bound) == (mask != 0));
    std::vector<std::uint32_t> out(64), out_keys(64);
    const auto starts_with = [](auto found, const auto& expected) {
        found.resize(expected.size());
        return found == expected;
    };
    Steps::append(mask, x.data(), first, out.data(), out_keys.data());
    CHECK(starts_with(out, indices));
    CHECK(starts_with(out_keys, large));
    CHECK(Steps::keep_at_least(numbers.data(), keys.data(), bound, out.data()) == indices.size());
    CHECK(starts_with(out, indices));
    CHECK(Steps::keep_at_most(keys.data(), bound, out.data()) == small.size());
    CHECK(starts_with(out, small));
}

TEST_CASE("the cut below the k largest keys, whatever their order") {
    using order = std::uint32_t (*)(std::uint32_t);
    const order orders[] = {[](std::uint32_t i) { return i; },
                            [](std::uint32_t i) { return 5000 - i; },
                            [](std::uint32_t) { return 7U; },
                            [](std::uint32_t i) { return i % 3; },
                            [](std::uint32_t i) { return i < 50 ? i : 100 - i; },
                            [](std::uint32_t i) { return i * 2654435761U >> 20; }};
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{100}, std::size_t{5000}})
        for (const order key_of : orders)
            for (const std::size_t k : {std::size_t{1}, count / 9 + 1, count / 2 + 1, count}) {
                if (k > count) continue;
                std::vector<std::uint32_t> keys(count);
                for (std::size_t i = 0; i < count; ++i) keys[i] = key_of(static_cast<std::uint32_t>(i));
                std::vector<std::uint32_t> sorted = keys;
                std::sort(sorted.begin(), sorted.end(), std::greater<>{});
                const auto at = kernel::detail::cut_keys(keys.data(), count, k);
                CHECK(at.key == sorted[k - 1]);
                CHECK(at.ties == static_cast<std::size_t>(std::count(
                                     sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(k), at.key)));
            }
}

}  // namespace

TEST_CASE("steps on blocks match their definition, in portable code and in instructions of the machine") {
    for (const auto& x : blocks())
        for (const std::uint32_t bound : bounds_of(x)) {
            check_steps<kernel::detail::portable_steps>(x, bound);
            check_steps<kernel::detail::selection_steps<float, std::uint32_t>>(x, bound);
        }
}

TEST_CASE("all implementations of the steps collect the same entries") {
    for (const auto& [name, x] : samples<float>(3000))
        for (const std::uint32_t bound : bounds_of(x))
            for (const std::size_t most_ties : {0U, 1U, 100U, 3000U}) {
                std::size_t above_bound = 0;
                for (const float each : x) above_bound += kernel::magnitude(each) > bound ? 1U : 0U;
                const auto collected = [&]<class Steps>(std::size_t capacity) {
                    kernel::select_scratch scratch;
                    auto above = kernel::detail::room_for_candidates<float, std::uint32_t>(scratch, capacity);
                    auto ties = kernel::detail::room_for_ties<std::uint32_t>(scratch, most_ties);
                    const bool fit = kernel::detail::collect<float, std::uint32_t, Steps>(x, 5, bound, above, ties);
                    CHECK(fit == (above_bound <= capacity));
                    if (!fit) return std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>{};
                    return std::pair{std::vector(above.indices, above.indices + above.count),
                                     std::vector(ties.indices, ties.indices + ties.count)};
                };
                const auto every = collected.operator()<kernel::detail::portable_steps>(x.size());
                using steps = kernel::detail::selection_steps<float, std::uint32_t>;
                CHECK(collected.operator()<steps>(x.size()) == every);
                for (const std::size_t capacity : {x.size() / 20, above_bound}) {  // room for the few that are expected
                    if (capacity < above_bound) continue;
                    CHECK(collected.operator()<kernel::detail::portable_steps>(capacity) == every);
                    CHECK(collected.operator()<steps>(capacity) == every);
                }
            }
}

TEST_CASE_TEMPLATE("the cut of many keys is that of the sorted keys", Key, std::uint32_t, std::uint64_t) {
    constexpr std::size_t n = 4200;
    random_sequence random(random_key{8});
    std::vector<std::vector<Key>> inputs(4, std::vector<Key>(n, 5));  // the first input: all keys are equal
    for (std::size_t i = 0; i < n; ++i) {
        inputs[1][i] = static_cast<Key>(random.bits());
        inputs[2][i] = random.bits() % 3;
        inputs[3][i] = random.bits() % 5000 + 1000;  // keys that differ in one digit only, except for the next input's
    }
    inputs[3][77] = static_cast<Key>(-1);
    for (const auto& keys : inputs) {
        auto sorted = keys;
        std::sort(sorted.rbegin(), sorted.rend());
        for (const std::size_t k : {std::size_t{1}, std::size_t{2}, n / 3, n - 1, n}) {
            auto copy = keys;
            const auto at = kernel::detail::cut_keys(copy.data(), n, k);
            const auto above = std::count_if(keys.begin(), keys.end(), [&](Key key) { return key > at.key; });
            CHECK(at.key == sorted[k - 1]);
            CHECK(at.ties == k - static_cast<std::size_t>(above));
        }
    }
}

TEST_CASE("entries with few different magnitudes are selected as by a full sort") {
    constexpr std::size_t n = 20000;
    std::vector<float> x(n);
    random_sequence random(random_key{6});
    for (float& v : x) v = static_cast<float>(static_cast<int>(random.below(63)) - 31);
    kernel::select_scratch scratch;
    for (const std::size_t k : {n / 100, n / 10, n / 2}) {
        std::vector<std::uint32_t> found(k);
        kernel::top_k<float, std::uint32_t>(x, k, found, scratch);
        CHECK(found == naive_top_k<float, std::uint32_t>(x, 0, n, k));
    }
}

TEST_CASE_TEMPLATE("top_k selects as a full sort does", Row, RILL_KERNEL_ROWS) {
    using T = typename Row::element;
    using Index = typename Row::index;
    kernel::select_scratch scratch;
    for (std::size_t n : {0U, 1U, 2U, 63U, 64U, 65U, 1000U, 2047U, 2048U, 5000U, 20000U})
        for (const auto& [name, x] : samples<T>(n))
            for (std::size_t k : {std::size_t{0}, std::size_t{1}, n / 100, n / 10, n / 2, n - n / 50,
                                  n - std::min<std::size_t>(n, 1), n, n + 7}) {
                CAPTURE(name);
                CAPTURE(n);
                CAPTURE(k);
                std::vector<Index> found(std::min(n, k));
                const std::size_t count = kernel::top_k<T, Index>(x, k, found, scratch);
                CHECK(count == found.size());
                CHECK(found == naive_top_k<T, Index>(x, 0, n, k));
            }
}

TEST_CASE_TEMPLATE("the exact fallback agrees with the sampled path", T, float, double, std::int32_t, std::int64_t) {
    for (const auto& [name, x] : samples<T>(3000))
        for (std::size_t k : {1U, 30U, 1500U, 2999U}) {
            CAPTURE(name);
            kernel::select_scratch scratch;
            std::vector<std::uint32_t> found(k);
            const auto at = kernel::detail::cut_by_digits<T>(x, k);
            kernel::detail::emit_cut<T, std::uint32_t>(x, 0, at, k, found.data(), scratch);
            CHECK(found == naive_top_k<T, std::uint32_t>(x, 0, x.size(), k));
        }
}

TEST_CASE("a sample that misses the few large entries uses the exact fallback") {
    std::vector<float> x(100000, 1.0F);
    for (std::size_t i = 0; i < 40; ++i) x[i * 2500 + 3] = 2.0F + static_cast<float>(i);
    kernel::select_scratch scratch;
    for (std::size_t k : {1U, 39U, 40U, 41U, 5000U}) {
        std::vector<std::uint32_t> found(k);
        kernel::top_k<float, std::uint32_t>(x, k, found, scratch);
        CHECK(found == naive_top_k<float, std::uint32_t>(x, 0, x.size(), k));
    }
}

TEST_CASE_TEMPLATE("a NaN is an error that names the lowest coordinate", T, float, double) {
    kernel::select_scratch scratch;
    for (std::size_t n : {10U, 3000U, 40000U})
        for (const auto& [name, values] : samples<T>(n))
            for (std::size_t k : {std::size_t{0}, std::size_t{1}, n / 10, n})
                for (std::size_t nans : {1U, 5U}) {
                    auto x = values;
                    for (std::size_t i = 0; i < nans; ++i) {
                        x[n - 1 - i] = std::numeric_limits<T>::quiet_NaN();
                        if (i % 2 == 1) x[n - 1 - i] = -x[n - 1 - i];
                    }
                    std::vector<std::uint32_t> found(k);
                    const std::string expected = "rill: coordinate " + std::to_string(n - nans) + " is NaN";
                    CAPTURE(name);
                    CHECK_THROWS_WITH_AS((kernel::top_k<T, std::uint32_t>(x, k, found, scratch)), expected.c_str(),
                                         invalid_value);
                }
}

TEST_CASE("a vector that holds only NaN is refused") {
    std::vector<float> x(5000, std::numeric_limits<float>::quiet_NaN());
    kernel::select_scratch scratch;
    std::vector<std::uint32_t> found(10);
    CHECK_THROWS_WITH_AS((kernel::top_k<float, std::uint32_t>(x, 10, found, scratch)), "rill: coordinate 0 is NaN",
                         invalid_value);
}

TEST_CASE("selection allocates once") {
    kernel::select_scratch scratch;
    std::vector<std::uint32_t> found(400);
    const auto x = samples<float>(20000);
    kernel::top_k<float, std::uint32_t>(x[0].values, 400, found, scratch);
    const void* const where[] = {scratch.indices.data(), scratch.keys.data(), scratch.middle.data(),
                                 scratch.ties.data()};
    kernel::top_k<float, std::uint32_t>(x[1].values, 400, found, scratch);
    CHECK(where[0] == scratch.indices.data());
    CHECK(where[1] == scratch.keys.data());
    CHECK(where[2] == scratch.middle.data());
    CHECK(where[3] == scratch.ties.data());
}

TEST_CASE("too little room for the result is a broken contract") {
    kernel::select_scratch scratch;
    std::vector<float> x(10, 1.0F);
    std::vector<std::uint32_t> found(3);
    CHECK_THROWS_AS((kernel::top_k<float, std::uint32_t>(x, 4, found, scratch)), contract_violation);
    CHECK_THROWS_AS((kernel::gather<float, std::uint32_t>(x, found, {})), contract_violation);
}

TEST_CASE("gather takes the values at the indices") {
    const std::vector<double> x{1, 2, 3, 4};
    const std::vector<std::uint64_t> indices{0, 2, 3};
    std::vector<double> values(3);
    kernel::gather<double, std::uint64_t>(x, indices, values);
    CHECK(values == std::vector<double>{1, 3, 4});
}
