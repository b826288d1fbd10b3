#include <rill/core/segment.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using namespace rill;

TEST_CASE("segments contain and overlap") {
    constexpr segment s{10, 20};
    CHECK(s.size() == 10);
    CHECK_FALSE(s.empty());
    CHECK(segment{3, 3}.empty());
    CHECK(s.contains(std::size_t{10}));
    CHECK_FALSE(s.contains(std::size_t{20}));
    CHECK_FALSE(s.contains(std::size_t{9}));
    CHECK(s.contains(segment{10, 20}));
    CHECK(s.contains(segment{20, 20}));
    CHECK_FALSE(s.contains(segment{9, 11}));
    CHECK_FALSE(s.contains(segment{19, 21}));
    CHECK(s.overlaps({19, 30}));
    CHECK(s.overlaps({0, 11}));
    CHECK_FALSE(s.overlaps({20, 30}));
    CHECK_FALSE(s.overlaps({0, 10}));
}

TEST_CASE("split divides any range into consecutive, nearly equal parts") {
    for (std::size_t parts = 1; parts < 20; ++parts)
        for (std::size_t n = 0; n < 70; ++n) {
            std::size_t end = 0;
            bool good = true;
            for (std::size_t i = 0; i < parts; ++i) {
                const segment part = split(n, parts, i);
                good = good && part.begin == end && part.size() == n / parts + (i < n % parts ? 1 : 0);
                end = part.end;
                for (std::size_t j = i; j <= parts; ++j) {
                    const segment joined = split(n, parts, i, j);
                    good = good && joined.begin == part.begin;
                    good = good && joined.end == (j == i ? part.begin : split(n, parts, j - 1).end);
                }
            }
            CHECK(end == n);
            CHECK(good);
        }
    constexpr std::size_t huge = ~std::size_t{0};
    CHECK(split(huge, 7, 6).end == huge);
}
