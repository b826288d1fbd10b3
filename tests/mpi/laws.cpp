#include <rill/testing/transport_laws.hpp>
#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace rill;

namespace {

void check_laws(const mpi::options& chosen, testing::transport_limits limits) {
    limits.mailbox_bytes = chosen.mailbox_bytes;
    limits.copied_bytes = chosen.sends_unasked.value_or(false) ? chosen.mailbox_bytes : chosen.eager_bytes;
    limits.one_process = false;
    limits.lends = false;
    limits.most_ranks = processes::count();
    if (const char* const only = std::getenv("RILL_TEST_LAW")) limits.only = only;
    int laws = 0;
    testing::for_each_law([&](int ranks, auto&& body) { processes::run(ranks, body, chosen); }, limits,
                          [&](const char* name, const testing::law_outcome& outcome) {
                              ++laws;
                              CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
                          });
    CHECK(laws >= (processes::count() == 1 ? 14 : processes::count() == 2 ? 30 : 45));
}

}  // namespace

TEST_CASE("laws") { check_laws({.mailbox_bytes = 4096}, {}); }

TEST_CASE("laws without matched probes") {
    check_laws({.mailbox_bytes = 4096, .matched_probes = false}, {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}

TEST_CASE("laws where waits block in the library") {
    check_laws({.mailbox_bytes = 4096, .blocks_beyond = seconds(1)},
               {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}

TEST_CASE("laws where almost every message is announced first") {
    check_laws({.mailbox_bytes = 4096, .eager_bytes = 1024}, {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}

TEST_CASE("laws where large messages go unasked") {
    check_laws({.mailbox_bytes = 150'000, .eager_bytes = 1024, .sends_unasked = true},
               {.large_bytes = 100'000, .largest_bytes = 1'000'000});
}
