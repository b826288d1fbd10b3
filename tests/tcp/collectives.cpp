#include <rill/collective/group.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/tcp.hpp>

#include "../collective/cases.hpp"
#include "../mpi/evidence.hpp"
#include "../support/sanitized.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using digests = std::vector<std::uint64_t>;

// Eight ranks over three cards make 84 connections for each topology.
#ifdef RILL_TEST_SANITIZED
constexpr int most_striped = 4;
#else
constexpr int most_striped = 8;
#endif

template <class Run, class Shape>
std::vector<digests> results(int count, const Shape& shape, Run&& run) {
    std::vector<digests> each(static_cast<std::size_t>(count));
    run([&](auto& net) {
        rill::group workers{net, shape};
        each[static_cast<std::size_t>(net.rank())] = evidence::of(workers).digests();
    });
    return each;
}

}  // namespace

TEST_CASE(
    "collectives give the bits of in_process, whether messages are sent at once, unasked in pieces, or announced, and "
    "encrypted or not") {
    for (const int count : {1, 2, 3, 4, 5, 8}) {
        cases::for_each_topology([&](auto shape) {
            const auto expected = results(count, shape, [&](auto body) { rill::in_process::run(count, body); });
            const auto check = [&](const rill::tcp::options& chosen, const std::string& host) {
                CHECK_MESSAGE(
                    results(count, shape, [&](auto body) { ranks::run(count, body, chosen, host); }) == expected,
                    std::string(shape.name)
                        << " among " << count << ", at most " << chosen.eager_bytes << " bytes at once, " << host);
            };
            check({}, "127.0.0.1");
            check({.eager_bytes = 1024}, "[::1]");
            check({.mailbox_bytes = 5000, .eager_bytes = 1024, .sends_unasked = true}, "127.0.0.1");
            rill::tcp::options encrypted;
            ranks::encrypt(encrypted);
            check(encrypted, "127.0.0.1");
            if (count <= most_striped) check({.interfaces = "127.0.0.1,127.0.0.2,::1"}, "127.0.0.1");
        });
    }
}
