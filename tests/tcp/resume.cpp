#include <rill/collective/group.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/tcp.hpp>

#include "../mpi/evidence.hpp"
#include "proxy.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

using namespace rill;

namespace {

/// A rank whose connections have all been lost, and which reaches its peers by other addresses.
class rerouted : public tcp::endpoint {
  public:
    rerouted(tcp::detail::mesh&& met, const tcp::options& chosen) : tcp::endpoint(std::move(met), chosen) {}

    template <class Body>
    void run(Body& body) {
        mail::run(*engine_, *this, body);
    }
};

/// Runs `body(net)` on ranks that reach each other only through the proxy.
template <class Body>
void run_behind(ranks::cutting_proxy& proxy, int count, Body&& body, tcp::options chosen) {
    using namespace tcp::detail;
    chosen.meeting = ranks::free_point();
    std::vector<roster_address> before(static_cast<std::size_t>(count));
    std::barrier<> all(count);
    const auto thrown = ranks::on_threads(count, chosen, [&](const tcp::options& own) {
        mesh met = meeting(own).run();
        if (count > 1)
            before[static_cast<std::size_t>(own.rank)] =
                roster_address_of(proxy.stand_before(socket_address::local_of(met.listeners.front())));
        all.arrive_and_wait();
        for (std::size_t peer = 0; peer < met.roster.size(); ++peer) met.roster[peer].addresses = {before[peer]};
        for (const line& each : met.to_peers)
            if (each) ::shutdown(each.on().get(), SHUT_RDWR);
        rerouted(std::move(met), own).run(body);
    });
    for (const auto& each : thrown)
        if (each) std::rethrow_exception(each);
}

}  // namespace

TEST_CASE("connections that are cut anywhere lose and repeat nothing: collectives have the bits of in_process") {
    int cuts = 0;
    for (const int count : {2, 3, 4}) {
        CAPTURE(count);
        const auto results = [&](auto&& run) {
            std::vector<std::vector<std::uint64_t>> each(static_cast<std::size_t>(count));
            run([&](auto& net) {
                group workers{net, topology::ring{}};
                each[static_cast<std::size_t>(net.rank())] = evidence::of(workers).digests();
            });
            return each;
        };
        const auto expected = results([&](auto body) { in_process::run(count, body); });
        ranks::cutting_proxy proxy(30'000, static_cast<std::uint64_t>(count));
        CHECK(results([&](auto body) { run_behind(proxy, count, body, {.eager_bytes = 4096}); }) == expected);
        cuts += proxy.cuts();
    }
    CHECK(cuts > 100);
}

TEST_CASE("laws over connections that are cut") {
    ranks::cutting_proxy proxy(100'000, 1);
    const tcp::options chosen{.mailbox_bytes = 150'000, .eager_bytes = 1024};
    testing::transport_limits limits{.large_bytes = 100'000, .largest_bytes = 1'000'000};
    limits.mailbox_bytes = chosen.mailbox_bytes;
    limits.copied_bytes = chosen.eager_bytes;
    limits.lends = false;
    limits.most_ranks = 3;
    testing::for_each_law([&](int count, auto&& body) { run_behind(proxy, count, body, chosen); }, limits,
                          [&](const char* name, const testing::law_outcome& outcome) {
                              CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
                          });
    CHECK(proxy.cuts() > 50);
}
