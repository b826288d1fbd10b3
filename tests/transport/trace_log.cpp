#include <rill/transport/trace_log.hpp>

#include <doctest/doctest.h>

#include <cstdint>

TEST_CASE("a full log drops events and counts them") {
    rill::trace_log log(2);
    for (int i = 0; i < 5; ++i) log.record({.bytes = static_cast<std::uint64_t>(i)});
    CHECK(log.events().size() == 2);
    CHECK(log.events()[1].bytes == 1);
    CHECK(log.dropped() == 3);
    log.clear();
    CHECK(log.events().empty());
    CHECK(log.dropped() == 0);
}
