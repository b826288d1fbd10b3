#include <rill/testing/transport_laws.hpp>
#include <rill/transport/tcp.hpp>

#include "ranks.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace rill;

namespace {

void check_laws(int most_ranks, const tcp::options& chosen, testing::transport_limits limits,
                const std::string& host = "127.0.0.1") {
    limits.mailbox_bytes = chosen.mailbox_bytes;
    limits.copied_bytes = chosen.sends_unasked.value_or(false) ? chosen.mailbox_bytes : chosen.eager_bytes;
    limits.lends = false;
    limits.most_ranks = most_ranks;
    if (const char* const only = std::getenv("RILL_TEST_LAW")) limits.only = only;
    int laws = 0;
    testing::for_each_law([&](int count, auto&& body) { ranks::run(count, body, chosen, host); }, limits,
                          [&](const char* name, const testing::law_outcome& outcome) {
                              ++laws;
                              CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
                          });
    CHECK(laws >= (limits.only.empty() ? 45 : 1));
}
/// Checks all laws among up to eight ranks, and the one law about as many ranks as there may be among fewer too.
void check_laws_of_each_size(const tcp::options& chosen, const testing::transport_limits& limits) {
    check_laws(8, chosen, limits);
    testing::transport_limits one = limits;
    one.only = "post, then receive, around the largest ring";
    for (const int most : {1, 2, 3, 4, 5}) {
        CAPTURE(most);
        check_laws(most, chosen, one);
    }
}

}  // namespace

TEST_CASE("laws") {
    check_laws_of_each_size({.mailbox_bytes = 4096}, {.large_bytes = 1'000'000, .largest_bytes = 3'000'000});
}

TEST_CASE("laws over IPv6") {
    check_laws(4, {.mailbox_bytes = 4096}, {.large_bytes = 100'000, .largest_bytes = 1'000'000}, "[::1]");
}

TEST_CASE("laws over two interfaces") {
    tcp::options chosen{.interfaces = "127.0.0.1,127.0.0.2", .mailbox_bytes = 150'000, .eager_bytes = 1024};
    check_laws(3, chosen, {.large_bytes = 100'000, .largest_bytes = 3'000'000});
    chosen = {.interfaces = "127.0.0.2,::1", .mailbox_bytes = 150'000, .sends_unasked = true};
    ranks::encrypt(chosen);
    check_laws(4, chosen, {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}

TEST_CASE("laws where almost every message is announced first") {
    check_laws(3, {.mailbox_bytes = 4096, .eager_bytes = 1024}, {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}

TEST_CASE("laws where large messages go unasked") {
    check_laws(3, {.mailbox_bytes = 150'000, .eager_bytes = 1024, .sends_unasked = true},
               {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}

TEST_CASE("laws over encrypted connections") {
    tcp::options chosen{.mailbox_bytes = 150'000, .sends_unasked = true, .abort_timeout = seconds(20)};
    ranks::encrypt(chosen);
    const testing::transport_limits limits{.large_bytes = 100'000, .largest_bytes = 1'000'000};
    check_laws_of_each_size(chosen, limits);
    check_laws(3, chosen, limits, "[::1]");
}
