#include <rill/transport/detail/call_history.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using rill::calls_remembered;
using rill::detail::call_history;

namespace {
rill::call_signature call(std::uint64_t number) {
    return {.number = number, .kind = rill::operation::barrier, .dimension = 2 * number};
}
}  // namespace

TEST_CASE("call_history: finds a call by its number, whatever calls came later") {
    call_history calls;
    CHECK(!calls.entered(1));
    for (const std::uint64_t number : {7U, 5U, 6U}) calls.announce(call(number));
    for (const std::uint64_t number : {5U, 6U, 7U}) CHECK(calls.entered(number) == call(number));
    CHECK(!calls.entered(4));
    CHECK(!calls.entered(8));
    CHECK(!calls.entered(0));
}

TEST_CASE("call_history: at a timeout, a later call is an answer, an earlier one is not") {
    call_history calls;
    CHECK(!calls.entered_or_later(1));
    calls.announce(call(9));
    calls.announce(call(3));
    CHECK(calls.entered_or_later(3) == call(3));
    CHECK(calls.entered_or_later(4) == call(9));
    CHECK(!calls.entered_or_later(10));
}

TEST_CASE("call_history: forgets old calls") {
    call_history calls;
    for (std::uint64_t number = 0; number < 2 * calls_remembered; ++number) calls.announce(call(number));
    CHECK(!calls.entered(calls_remembered - 1));
    CHECK(calls.entered(calls_remembered) == call(calls_remembered));
    CHECK(calls.entered_or_later(1) == call(2 * calls_remembered - 1));
}
