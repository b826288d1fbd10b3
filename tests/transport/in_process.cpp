#include <rill/testing/transport_laws.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

using namespace rill;

TEST_CASE("in_process keeps the laws of a transport") {
    constexpr std::size_t mailbox_bytes = 4096;
    int laws = 0;
    testing::for_each_law(
        [](int ranks, auto&& body) { in_process::run(ranks, body, {.mailbox_bytes = mailbox_bytes}); },
        {.mailbox_bytes = mailbox_bytes},
        [&](const char* name, const testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
    CHECK(laws > 40);
}
