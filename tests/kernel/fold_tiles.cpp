#include <rill/core/random.hpp>
#include <rill/kernel/fold_tiles.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

using namespace rill;

namespace {

template <class T>
std::vector<T> noise(std::uint64_t seed, std::size_t n) {
    const counter_rng random(random_key{seed});
    std::vector<T> x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(2000 * random.uniform(i) - 1000);
    return x;
}

/// Neither commutative nor associative.
constexpr auto skew = [](auto a, auto b) { return static_cast<decltype(a)>(a - 2 * b); };

template <class T>
void check(std::size_t inputs, std::size_t outputs, segment part, bool in_place, std::size_t past_caches = 0) {
    const std::size_t n = part.end + 3;
    std::vector<std::vector<T>> x, out;
    for (std::size_t k = 0; k < inputs; ++k) x.push_back(noise<T>(k, n));
    const auto before = x;
    for (std::size_t k = 0; k < outputs; ++k) out.emplace_back(n, T{7});
    std::vector<const T*> from;
    std::vector<T*> to;
    for (auto& each : x) from.push_back(each.data());
    for (std::size_t k = 0; k < outputs; ++k) to.push_back(in_place && k < inputs ? x[k].data() : out[k].data());
    const auto add_one = [](std::span<T> values) {
        for (T& value : values) value = static_cast<T>(value + T{1});
    };
    kernel::fold_tiles<T>(from, to, part, skew, add_one, past_caches);
    for (std::size_t k = 0; k < outputs; ++k)
        for (std::size_t i = 0; i < n; ++i) {
            T due = before[0][i];
            for (std::size_t j = 1; j < inputs; ++j) due = skew(due, before[j][i]);
            due = static_cast<T>(due + T{1});
            if (!part.contains(i)) due = in_place && k < inputs ? before[k][i] : T{7};
            REQUIRE(std::memcmp(&to[k][i], &due, sizeof due) == 0);
        }
}

}  // namespace

TEST_CASE_TEMPLATE("fold_tiles is the left fold of its part, and writes nothing else", T, float, double, std::int32_t,
                   std::int64_t) {
    for (const std::size_t inputs : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 16U, 17U})
        for (const segment part : {segment{0, 0}, segment{0, 1}, segment{3, 19}, segment{1, 70}, segment{5, 133}})
            for (const bool in_place : {false, true}) {
                CAPTURE(inputs);
                CAPTURE(part.begin);
                CAPTURE(part.end);
                check<T>(inputs, inputs, part, in_place);
                check<T>(inputs, 1, part, in_place);
            }
}

TEST_CASE_TEMPLATE("fold_tiles: bypassing the caches gives the same result", T, float, double, std::int32_t,
                   std::int64_t) {
    for (const std::size_t outputs : {1U, 2U, 5U})
        for (const std::size_t past_caches : {std::size_t{1}, outputs})
            for (const segment part : {segment{0, 0}, segment{0, 3}, segment{2, 40}, segment{7, 333}})
                check<T>(3, outputs, part, false, past_caches);
    // Outputs whose offsets within a cache line differ: what cannot be streamed is copied.
    const std::vector<T> x = noise<T>(1, 300), y = noise<T>(2, 300);
    for (std::size_t shift = 0; shift < 64 / sizeof(T); ++shift) {
        std::vector<T> one(300), other(300 + shift);
        const T* const from[] = {x.data(), y.data()};
        T* const to[] = {one.data(), other.data() + shift};
        kernel::fold_tiles<T>(
            from, to, {1, 299}, skew, [](std::span<T>) {}, 2);
        for (std::size_t i = 1; i < 299; ++i) {
            REQUIRE(one[i] == skew(x[i], y[i]));
            REQUIRE(to[1][i] == one[i]);
        }
    }
}

TEST_CASE("fold_tiles: an exception of the fold propagates, and inputs are unchanged") {
    const std::vector<float> x(100, 1), y(100, 2);
    std::vector<float> out(100, 0);
    const float* const from[] = {x.data(), y.data()};
    float* const to[] = {out.data()};
    const auto breaks = [](float, float) -> float { throw std::domain_error("broken"); };
    CHECK_THROWS_AS(kernel::fold_tiles<float>(from, to, {0, 100}, breaks, [](std::span<float>) {}), std::domain_error);
    CHECK(x == std::vector<float>(100, 1));
    CHECK(out == std::vector<float>(100, 0));
}
