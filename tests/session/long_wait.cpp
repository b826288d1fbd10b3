#include <rill/session/detail/long_wait.hpp>

#include <doctest/doctest.h>

TEST_CASE("long_wait: travels as a call, and explains what was due later") {
    const rill::detail::long_wait wait{.peer = 70000, .reading = true, .of_round = 9000, .in_round = 12345};
    CHECK(rill::detail::long_wait::from(wait.announced_in(7)) == wait);
    CHECK(wait.announced_in(7).number == 7);
    CHECK(rill::detail::long_wait::from(rill::detail::long_wait{}.announced_in(1)) == rill::detail::long_wait{});

    const auto of_message = [](int round) {
        return rill::detail::long_wait{.peer = 1, .of_round = round, .in_round = round};
    };
    CHECK(of_message(1).explains(of_message(2)));
    CHECK_FALSE(of_message(2).explains(of_message(2)));
    CHECK(of_message(5).explains({.peer = 1, .reading = true, .of_round = 2, .in_round = 9}));
    CHECK_FALSE(rill::detail::long_wait{}.explains(of_message(2)));

    const auto any = rill::detail::long_wait::of_any_order(3);
    CHECK(any.explains(any));
    CHECK_FALSE(rill::detail::long_wait{}.explains(any));
}
