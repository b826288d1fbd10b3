#include <rill/core/time.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>

using namespace rill;

namespace {
constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();
}  // namespace

TEST_CASE("units of time") {
    CHECK(nanoseconds(3).ns == 3);
    CHECK(microseconds(3).ns == 3'000);
    CHECK(milliseconds(-3).ns == -3'000'000);
    CHECK(seconds(3).ns == 3'000'000'000);
    CHECK(milliseconds(1500).seconds() == doctest::Approx(1.5));
    CHECK(milliseconds(2) + microseconds(1) == microseconds(2001));
    CHECK(milliseconds(2) - microseconds(1) == microseconds(1999));
    CHECK(milliseconds(2) * 3 == milliseconds(6));
    CHECK(milliseconds(2) / 4 == microseconds(500));
    CHECK(milliseconds(1) < seconds(1));
}

TEST_CASE("durations of the standard library convert without loss") {
    using namespace std::chrono_literals;
    CHECK(duration(5ns) == nanoseconds(5));
    CHECK(duration(-7us) == microseconds(-7));
    CHECK(duration(2min) == seconds(120));
    CHECK(duration(1.5s) == milliseconds(1500));
    CHECK(duration(std::chrono::nanoseconds(1234567890123456789)).ns == 1234567890123456789);
    CHECK(duration(std::chrono::nanoseconds::max()).ns == most);
    CHECK(duration(std::chrono::nanoseconds::min()).ns == least);
    CHECK(duration(std::chrono::duration<int, std::ratio<1, 3>>(1)).ns == 333'333'333);
    CHECK(duration(std::chrono::duration<std::int64_t, std::pico>(-12'345)).ns == -12);
}

TEST_CASE("time saturates at the ends of its range") {
    CHECK(seconds(most).ns == most);
    CHECK(seconds(least).ns == least);
    CHECK(duration(std::chrono::hours::max()).ns == most);
    CHECK(duration(std::chrono::hours::min()).ns == least);
    CHECK(duration(std::chrono::duration<double>(1e300)).ns == most);
    CHECK(duration(std::chrono::duration<double>(-1e300)).ns == least);
    CHECK((duration(most) + nanoseconds(1)).ns == most);
    CHECK((duration(least) + nanoseconds(-1)).ns == least);
    CHECK((duration(least) - nanoseconds(1)).ns == least);
    CHECK((duration(most) - nanoseconds(-1)).ns == most);
    CHECK((duration(0) - duration(least)).ns == most);
    CHECK((duration(most) * -2).ns == least);
    CHECK((duration(least) * -1).ns == most);
    CHECK((duration(least) * 1).ns == least);
    CHECK((duration(least) / -1).ns == most);
    CHECK((duration(-6) / -1).ns == 6);
    CHECK((duration(most / 2) * 2).ns == most - 1);
    CHECK((time_point{most - 5} + nanoseconds(6)).ns == most);
    CHECK((time_point{most - 5} + nanoseconds(4)).ns == most - 1);
    CHECK((time_point{least + 5} + nanoseconds(-6)).ns == least);
    CHECK((time_point{most} - time_point{-1}).ns == most);
    CHECK((time_point{7} - time_point{10}).ns == -3);
}

TEST_CASE("the transfer time of bytes is rounded up, and saturates") {
    CHECK(transfer_time(0, 1).ns == 0);
    CHECK(transfer_time(1, 3).ns == 333'333'334);
    CHECK(transfer_time(12'500'000, 25'000'000) == milliseconds(500));
    CHECK(transfer_time(std::uint64_t{1} << 63, 0) == duration());
    CHECK(transfer_time(9'223'372'036ULL, 1).ns == 9'223'372'036'000'000'000);
    CHECK(transfer_time(9'223'372'037ULL, 1).ns == most);
    CHECK(transfer_time(std::numeric_limits<std::uint64_t>::max(), 1).ns == most);
    CHECK(transfer_time(std::numeric_limits<std::uint64_t>::max(), 1'000'000'000'000).ns == 18'446'744'073'709'552);
}

TEST_CASE("deadlines") {
    CHECK(deadline::never.is_never());
    CHECK(deadline::immediate.is_immediate());
    const deadline soon = time_point{100} + seconds(1);
    CHECK_FALSE(soon.is_never());
    CHECK_FALSE(soon.is_immediate());
    CHECK(soon.at.ns == 1'000'000'100);
    CHECK(deadline::immediate < soon);
    CHECK(soon < deadline::never);
    // A wait of practically for ever has no deadline; it does not wrap around into the past.
    CHECK(deadline(time_point{100} + duration(most)).is_never());
}
