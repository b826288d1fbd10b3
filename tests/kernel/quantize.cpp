#include <doctest/doctest.h>

#include <rill/kernel/quantize.hpp>

#include "samples.hpp"

#include <cmath>
#include <cstring>

using namespace rill;

namespace {

template <class T>
struct quantized {
    std::vector<T> scales;
    std::vector<std::byte> codes;
};

template <class T>
quantized<T> quantize(const std::vector<T>& x, unsigned bits, std::size_t bucket, std::uint64_t key,
                      std::uint64_t first = 0) {
    quantized<T> q{std::vector<T>(kernel::quantize_buckets(x.size(), bucket)),
                   std::vector<std::byte>(kernel::quantized_bytes(x.size(), bits, bucket))};
    kernel::quantize<T>(x, bits, bucket, random_key{key}, first, q.scales, q.codes);
    return q;
}

template <class T>
std::vector<T> values(const quantized<T>& q, std::size_t n, unsigned bits, std::size_t bucket) {
    std::vector<T> out(n, T{77});
    kernel::dequantize<T>(q.codes, q.scales, bits, bucket, out);
    return out;
}

template <class T>
std::vector<T> noise(std::size_t n) {
    std::vector<T> x(n);
    const counter_rng random(random_key{n});
    for (std::size_t i = 0; i < n; ++i) x[i] = i % 9 == 0 ? T{0} : static_cast<T>(random.uniform(i)) - T{0.5};
    return x;
}

/// The definition, entry by entry.
template <class T>
std::vector<std::byte> reference_codes(const std::vector<T>& x, unsigned bits, std::size_t bucket, std::uint64_t key,
                                       std::uint64_t first) {
    std::vector<std::byte> codes;
    const std::int64_t levels = kernel::quantize_levels(bits);
    const std::size_t planes = 8 / bits;
    for (std::size_t begin = 0; begin < x.size(); begin += bucket) {
        const std::size_t n = std::min(bucket, x.size() - begin);
        T scale = 0;
        for (std::size_t i = 0; i < n; ++i) scale = std::max(scale, std::abs(x[begin + i]));
        const std::size_t bytes = (n + planes - 1) / planes;
        std::vector<unsigned> packed(bytes);
        for (std::size_t i = 0; i < n; ++i) {
            const volatile float ratio = scale > 0 ? static_cast<float>(x[begin + i] / scale) : 0.0F;
            const volatile float scaled = ratio * static_cast<float>(levels << 24);
            const auto draw = static_cast<std::int64_t>(counter_rng(random_key{key}).bits(first + begin + i) >> 8);
            const std::int64_t code = (static_cast<std::int64_t>(scaled) + (levels << 24) + draw) / (1 << 24);
            packed[i % bytes] |= static_cast<unsigned>(code) << (i / bytes * bits);
        }
        for (unsigned byte : packed) codes.push_back(static_cast<std::byte>(byte));
    }
    return codes;
}

}  // namespace

TEST_CASE_TEMPLATE("the codes are those of the definition", T, float, double) {
    for (unsigned bits : {2U, 4U, 8U})
        for (std::size_t n : {0U, 1U, 3U, 64U, 127U, 512U, 1024U, 2500U})
            for (std::size_t bucket : {1U, 5U, 512U, 1024U})
                for (std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 100}) {
                    const auto x = noise<T>(n);
                    CHECK(quantize(x, bits, bucket, 5, first).codes == reference_codes(x, bits, bucket, 5, first));
                }
}

TEST_CASE("golden bytes") {
    const std::vector<float> x{0.0F, 1.0F, -1.0F, 0.5F, -0.25F, 0.125F, 2.0F, -0.0F, 3e-39F, -3e-39F};
    const auto bytes = [&](unsigned bits) {
        std::string hex;
        for (std::byte b : quantize(x, bits, 8, 42).codes) {
            const char* digits = "0123456789abcdef";
            hex += {digits[std::to_integer<unsigned>(b) / 16], digits[std::to_integer<unsigned>(b) % 16]};
        }
        return hex;
    };
    CHECK(bytes(2) == "915502");
    CHECK(bytes(4) == "677ae3790e");
    CHECK(bytes(8) == "7fbe3f9f6f87fe7ffe00");
}

TEST_CASE_TEMPLATE("errors stay below one level; zero and the largest entry are exact", T, float, double) {
    for (unsigned bits : {2U, 4U, 8U})
        for (T unit : {T{1}, std::numeric_limits<T>::max(), std::numeric_limits<T>::min() / 64}) {
            std::vector<T> x = noise<T>(3000);
            for (T& v : x) v *= unit;
            const auto q = quantize(x, bits, 1024, 9);
            const auto y = values(q, x.size(), bits, 1024);
            CHECK_NOTHROW(kernel::check_scales<T>(q.scales));
            const T levels = static_cast<T>(kernel::quantize_levels(bits));
            for (std::size_t i = 0; i < x.size(); ++i) {
                const T scale = q.scales[i / 1024];
                REQUIRE(std::abs(y[i] - x[i]) <= scale / levels * (1 + 8 * std::numeric_limits<T>::epsilon()) +
                                                     std::numeric_limits<T>::denorm_min());
                if (x[i] == 0) REQUIRE(y[i] == 0);
                if (std::abs(x[i]) == scale) REQUIRE(y[i] == x[i]);
            }
        }
}

TEST_CASE("a bucket of zeros stays zero") {
    const std::vector<float> x(2048, -0.0F);
    const auto q = quantize(x, 4, 1024, 1);
    CHECK(q.scales == std::vector<float>(2, 0.0F));
    CHECK(values(q, x.size(), 4, 1024) == x);
}

TEST_CASE_TEMPLATE("rounding is unbiased", T, float, double) {
    constexpr std::size_t n = 40, draws = 4000;
    const auto x = noise<T>(n);
    for (unsigned bits : {2U, 4U, 8U}) {
        const double level = static_cast<double>(quantize(x, bits, n, 0).scales[0]) / kernel::quantize_levels(bits);
        std::vector<double> mean(n);
        for (std::uint64_t key = 0; key < draws; ++key) {
            const auto y = values(quantize(x, bits, n, key), n, bits, n);
            for (std::size_t i = 0; i < n; ++i) mean[i] += static_cast<double>(y[i]) / draws;
        }
        for (std::size_t i = 0; i < n; ++i) {
            const double in_levels = static_cast<double>(x[i]) / level;
            const double fraction = in_levels - std::floor(in_levels);
            const double sigma = std::sqrt(fraction * (1 - fraction) / draws);
            CHECK(std::abs(mean[i] / level - in_levels) <= 4 * sigma + 1e-5);
        }
    }
}

TEST_CASE_TEMPLATE("folding adds what dequantize gives", T, float, double) {
    for (unsigned bits : {2U, 4U, 8U})
        for (std::size_t n : {1U, 100U, 3000U}) {
            const auto q = quantize(noise<T>(n), bits, 512, 3);
            const auto y = values(q, n, bits, 512);
            std::vector<T> sum(n), expected(n);
            for (std::size_t i = 0; i < n; ++i) expected[i] = sum[i] = static_cast<T>(i) / T{7};
            kernel::dequantize_fold<T>(q.codes, q.scales, bits, 512, sum, [](T a, T b) { return a + b; });
            for (std::size_t i = 0; i < n; ++i) {
                const volatile T rounded = y[i];
                expected[i] = expected[i] + rounded;
            }
            CHECK(sum == expected);
        }
}

TEST_CASE("any codes decode, and no value exceeds the scale") {
    for (unsigned bits : {2U, 4U, 8U}) {
        const quantized<float> q{{std::numeric_limits<float>::max()}, std::vector<std::byte>(128, std::byte{0xFF})};
        for (float v : values(q, 128 * 8 / bits, bits, 1024)) REQUIRE(v == q.scales[0]);
    }
}

TEST_CASE("values that are not finite are refused with their global index") {
    for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> x(2000, 1.0F);
        x[1500] = bad;
        CHECK_THROWS_WITH_AS(quantize(x, 4, 1024, 1, 1000),
                             "rill: coordinate 2500 is not finite and cannot be quantised", invalid_value);
    }
}

TEST_CASE("received scales are checked") {
    const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    CHECK_NOTHROW(kernel::check_scales<float>(std::vector<float>{0, 1, 1e-45F}));
    for (float bad : {inf, nan, -1.0F, -inf, -nan})
        CHECK_THROWS_WITH_AS(kernel::check_scales<float>(std::vector<float>{1, bad}),
                             "rill: the scale of bucket 1 is negative or not finite", protocol_error);
}

TEST_CASE("wrong sizes and widths are broken contracts") {
    std::vector<float> x(10), scales(1);
    std::vector<std::byte> codes(5);
    CHECK_THROWS_AS(kernel::quantize<float>(x, 3, 16, {}, 0, scales, codes), contract_violation);
    CHECK_THROWS_AS(kernel::quantize<float>(x, 8, 16, {}, 0, scales, codes), contract_violation);
    CHECK_THROWS_AS(kernel::quantize<float>(x, 4, 8, {}, 0, scales, codes), contract_violation);
    CHECK_THROWS_AS(kernel::dequantize<float>(codes, scales, 2, 16, x), contract_violation);
}
