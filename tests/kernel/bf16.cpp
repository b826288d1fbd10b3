#include <doctest/doctest.h>

#include <rill/kernel/bf16.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace rill;

TEST_CASE("bfloat16 rounds to nearest, ties to even") {
    static_assert(kernel::to_bf16(1.0F) == 0x3F80);
    static_assert(kernel::to_bf16(-0.0F) == 0x8000);
    static_assert(kernel::to_bf16(std::bit_cast<float>(0x3F808000U)) == 0x3F80);  // a tie, rounded down to even
    static_assert(kernel::to_bf16(std::bit_cast<float>(0x3F818000U)) == 0x3F82);  // a tie, rounded up to even
    static_assert(kernel::to_bf16(std::bit_cast<float>(0x3F808001U)) == 0x3F81);
    static_assert(kernel::to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
    static_assert(kernel::to_bf16(-std::numeric_limits<float>::infinity()) == 0xFF80);
    static_assert(kernel::to_bf16(std::bit_cast<float>(0x00000001U)) == 0);
    static_assert(kernel::from_bf16(0x4049) == 3.140625F);
}

TEST_CASE("a NaN stays a NaN, whatever its payload") {
    for (std::uint32_t bits : {0x7F800001U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU, 0x7FC00000U})
        CHECK(std::isnan(kernel::from_bf16(kernel::to_bf16(std::bit_cast<float>(bits)))));
}

TEST_CASE("every bfloat16 survives the conversion to float and back") {
    for (std::uint32_t half = 0; half < 0x10000; ++half) {
        const float x = kernel::from_bf16(static_cast<std::uint16_t>(half));
        if (!std::isnan(x)) REQUIRE(kernel::to_bf16(x) == half);
    }
}

TEST_CASE_TEMPLATE("spans are stored as little-endian pairs of bytes", T, float, double) {
    for (std::size_t n : {0U, 1U, 63U, 64U, 65U, 200U}) {
        std::vector<T> x(n), y(n);
        for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(i) / T{7};
        std::vector<std::byte> bytes(2 * n);
        kernel::encode_bf16<T>(x, bytes);
        kernel::decode_bf16<T>(bytes, y);
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint16_t half = kernel::to_bf16(static_cast<float>(x[i]));
            CHECK(std::to_integer<unsigned>(bytes[2 * i]) == half % 256U);
            CHECK(std::to_integer<unsigned>(bytes[2 * i + 1]) == half / 256U);
            CHECK(y[i] == static_cast<T>(kernel::from_bf16(half)));
        }
    }
}

TEST_CASE("a size that does not fit is a broken contract") {
    std::vector<float> x(3);
    std::vector<std::byte> bytes(5);
    CHECK_THROWS_AS(kernel::encode_bf16<float>(x, bytes), contract_violation);
    CHECK_THROWS_AS(kernel::decode_bf16<float>(bytes, x), contract_violation);
}

TEST_CASE_TEMPLATE("the first value that would become infinite is found", T, float, double) {
    const T bound = kernel::least_beyond_bf16<T>;
    const T largest = std::nextafter(bound, T{0});
    CHECK(kernel::to_bf16(static_cast<float>(bound)) == 0x7F80);
    CHECK(kernel::to_bf16(static_cast<float>(largest)) == 0x7F7F);
    std::vector<T> x(200, -largest);
    CHECK(!kernel::find_beyond_bf16<T>(x));
    for (const T beyond : {bound, -bound, std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()})
        for (std::size_t at : {199U, 64U, 0U}) {
            std::vector<T> y = x;
            y[at] = beyond;
            CHECK(kernel::find_beyond_bf16<T>(y) == at);
        }
}
