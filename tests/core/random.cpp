// Golden numbers: masks and quantisation must draw the same numbers on all machines and in all versions.
#include <rill/core/random.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace rill;

TEST_CASE("golden numbers of mix64, which is splitmix64") {
    CHECK(mix64(0) == 0xE220A8397B1DCDAFU);
    CHECK(mix64(1) == 0x910A2DEC89025CC1U);
    CHECK(mix64(~std::uint64_t{0}) == 0xE4D971771B652C20U);
    CHECK(mix64(1, 2) == 0xBCD9DBB49673066BU);
    CHECK(mix64(2, 1) == 0xE06DD043328BD285U);
    CHECK(mix64(1, 2, 3) == 0x970864D014D5E8EFU);
    CHECK(random_key{42}.derive(7).value == mix64(42, 7));
}

TEST_CASE("golden numbers of the counter generator") {
    CHECK(counter_bits(0, 0, 0) == 0);
    CHECK(counter_bits(1, 2, 3) == 0x3E8236A3U);
    CHECK(counter_bits(~0U, ~0U, ~0U) == 0x41141055U);
    const counter_rng rng(random_key{42}.derive(7));
    CHECK(rng.bits(0) == 0xD96AE073U);
    CHECK(rng.bits(1) == 0x3F1E6F18U);
    CHECK(rng.bits(0xFFFFFFFFU) == 0x1CF9186BU);
    CHECK(rng.bits(std::uint64_t{1} << 32) == 0xB1F7EF21U);
    CHECK(rng.uniform(5) == 0x1.f3966p-2F);
}

TEST_CASE("golden numbers of a sequence, and its resumption") {
    random_sequence random(random_key{42});
    CHECK(random.bits() == 0x172733C2U);
    CHECK(random.bits() == 0x2FCDC9EDU);
    CHECK(random.uniform() == 0x1.c2c948p-3F);
    random_sequence resumed(random_key{42}, random.position());
    CHECK(random.below(1000) == 434);
    CHECK(random.below(std::uint64_t{1} << 40) == 230967352405U);
    CHECK(random.position() == 7);
    CHECK(resumed.below(1000) == 434);
}

__extension__ using wide_t = unsigned __int128;

TEST_CASE("multiply_high is the upper half of the product") {
    CHECK(multiply_high(~std::uint64_t{0}, ~std::uint64_t{0}) == ~std::uint64_t{0} - 1);
    CHECK(multiply_high(std::uint64_t{1} << 63, 6) == 3);
    CHECK(multiply_high(0xFFFFFFFFU, 0xFFFFFFFFU) == 0);
    random_sequence random(random_key{1});
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t a = mix64(random.bits()), b = mix64(random.bits());
        const auto wide = static_cast<wide_t>(a) * b;
        CHECK(multiply_high(a, b) == static_cast<std::uint64_t>(wide >> 64));
    }
}

TEST_CASE("below is unbiased") {
    // Counts are binomial: they are within 5 sigma of their mean, at a fixed seed.
    for (std::uint64_t bound : {1U, 2U, 3U, 7U, 10U}) {
        random_sequence random(random_key{bound});
        constexpr int draws = 20000;
        std::vector<int> counts(bound);
        for (int i = 0; i < draws; ++i) {
            const std::uint64_t drawn = random.below(bound);
            REQUIRE(drawn < bound);
            ++counts[drawn];
        }
        const double chance = 1.0 / static_cast<double>(bound);
        const double sigma = std::sqrt(draws * chance * (1 - chance));
        for (int count : counts) CHECK(std::abs(count - draws * chance) <= 5 * sigma);
    }
}

TEST_CASE("uniform is uniform and independent of its neighbour") {
    const counter_rng rng(random_key{5});
    constexpr int draws = 20000;
    double sum = 0, product = 0;
    float least = 1, most = 0;
    for (std::uint64_t i = 0; i < draws; ++i) {
        const float u = rng.uniform(i), next = rng.uniform(i + 1);
        sum += u;
        product += (u - 0.5) * (next - 0.5);
        least = u < least ? u : least;
        most = u > most ? u : most;
    }
    CHECK(std::abs(sum / draws - 0.5) < 5 * std::sqrt(1.0 / 12 / draws));
    CHECK(std::abs(product / draws) < 5 * (1.0 / 12) / std::sqrt(draws));
    CHECK(least >= 0);
    CHECK(least < 0.001F);
    CHECK(most < 1);
    CHECK(most > 0.999F);
}
