#include <rill/core/text.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using rill::text_of;

TEST_CASE("a text consists of characters and numbers, which are written as by std::to_string") {
    CHECK(text_of({}).empty());
    CHECK(text_of({"rank ", 3, " of ", std::string("four"), std::string_view("!?", 1)}) == "rank 3 of four!");
    CHECK(text_of({-7, " ", std::uint8_t{200}}) == "-7 200");
    CHECK(text_of({std::numeric_limits<std::int64_t>::min()}) == "-9223372036854775808");
    CHECK(text_of({std::numeric_limits<std::uint64_t>::max()}) == "18446744073709551615");
    for (const double number : {0.5, -60.0, std::numeric_limits<double>::max()})
        CHECK(text_of({number}) == std::to_string(number));
}
