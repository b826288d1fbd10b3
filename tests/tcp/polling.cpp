#include <rill/transport/detail/tcp_polling.hpp>

#include <doctest/doctest.h>

#include <vector>

using rill::tcp::detail::polling;

namespace {

/// How many waits sleep at once until one polls.
int left_out(polling& of) {
    int count = 0;
    while (!of.begins()) ++count;
    return count;
}

}  // namespace

TEST_CASE("a wait polls unless polls are off") {
    CHECK(polling().begins());
    CHECK_FALSE(polling(false).begins());
}

TEST_CASE("polls that find nothing become rare, and one that finds something is followed by another one") {
    polling of;
    std::vector<int> pauses;
    for (int i = 0; i < 10; ++i) {
        REQUIRE(of.begins());
        of.ended(false);
        polling later = of;
        pauses.push_back(left_out(later));
        while (!of.begins()) {
        }
    }
    CHECK(pauses == std::vector<int>{2, 4, 8, 16, 32, 64, 128, 256, 256, 256});
    of.ended(true);
    CHECK(left_out(of) == 0);
    of.ended(false);
    CHECK(left_out(of) == 2);
}
