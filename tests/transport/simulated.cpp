#include <rill/testing/transport_laws.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace sim = rill::simulated;
using rill::deadline;

namespace {

constexpr rill::channel on{.context = 0, .tag = 7};

template <class T>
rill::byte_view bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

}  // namespace

TEST_CASE("a message of n bytes arrives after the latency and n times the time of a byte") {
    const sim::network links{.latency = rill::nanoseconds(1000), .bandwidth = 500'000'000};
    std::int64_t first = 0, second = 0, other = 0;
    const sim::report all = sim::run(3, links, [&](sim::endpoint& net) {
        const std::vector<std::byte> data(100);
        if (net.rank() == 0) {
            auto a = net.post(1, on, rill::byte_view(data));
            auto b = net.post(1, on, rill::byte_view(data).first(10));
            auto c = net.post(2, on, rill::byte_view(data));
            a.wait(deadline::never);
            b.wait(deadline::never);
            c.wait(deadline::never);
        } else if (net.rank() == 1) {
            auto a = net.receive(0, on, deadline::never);
            CHECK(a->pieces()[0].data() != nullptr);
            CHECK(a->pieces().size_bytes() == 100);
            first = net.now().ns;
            a.reset();
            a = net.receive(0, on, deadline::never);
            CHECK(a->pieces().size_bytes() == 10);
            second = net.now().ns;
        } else {
            auto a = net.receive(0, on, deadline::never);
            other = net.now().ns;
        }
    });
    CHECK(first == 1000 + 200);
    CHECK(second == 1000 + 200 + 20);
    CHECK(other == first);
    CHECK(all.elapsed.ns == second);
    CHECK(all.messages == 3);
    CHECK(all.bytes == 210);
}

TEST_CASE("simulated keeps the laws of a transport") {
    constexpr std::size_t mailbox_bytes = 4096;
    int laws = 0;
    rill::testing::for_each_law(
        [](int ranks, auto&& body) { sim::run(ranks, {.mailbox_bytes = mailbox_bytes}, body); },
        {.mailbox_bytes = mailbox_bytes},
        [&](const char* name, const rill::testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
        });
    CHECK(laws > 40);
}
