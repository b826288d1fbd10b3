// Options at their bounds, and ranks whose options differ where they may.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/tcp.hpp>

#include "ranks.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace rill;

namespace {

template <class Net>
void sum_rightly(Net& net, std::size_t size = 3000) {
    group workers{net, topology::ring{}};
    const std::vector<float> one(size, 1.0F);
    std::vector<float> sum(size);
    all_reduce(workers, one, sum);
    CHECK(sum == std::vector<float>(size, static_cast<float>(net.size())));
}

}  // namespace

TEST_CASE("ranks sum with each size at its bound") {
    constexpr std::size_t most_eager = std::size_t{1} << 30;
    for (const tcp::options& chosen :
         {tcp::options{.window_bytes = 1}, tcp::options{.mailbox_bytes = 1}, tcp::options{.chunk_bytes = 1},
          tcp::options{.mailbox_bytes = 1, .eager_bytes = 1024, .sends_unasked = true, .window_bytes = 1},
          tcp::options{.eager_bytes = most_eager}, tcp::options{.chunk_bytes = std::size_t{1} << 62}}) {
        CAPTURE(chosen.window_bytes);
        CAPTURE(chosen.mailbox_bytes);
        CAPTURE(chosen.eager_bytes);
        CAPTURE(chosen.chunk_bytes);
        ranks::run(
            3, [](auto& net) { sum_rightly(net); }, chosen);
    }
}

TEST_CASE("times without end are no times that are over") {
    constexpr duration endless{std::numeric_limits<std::int64_t>::max()};
    ranks::run(3, [](auto& net) { sum_rightly(net); },
               {.meeting_timeout = endless,
                .patience = endless,
                .abort_timeout = endless,
                .failure_timeout = endless,
                .farewell_timeout = endless});
}

TEST_CASE("up to eight interfaces, of which ranks may have different numbers") {
    const std::string all = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5,127.0.0.6,127.0.0.7,127.0.0.8";
    ranks::run(3, [](auto& net) { sum_rightly(net, 100'000); }, {.interfaces = all});
    const std::array<std::string, 3> interfaces{all, "127.0.0.1", "127.0.0.2,127.0.0.3"};
    for (const auto& each : ranks::on_threads(3, {.meeting = ranks::free_point()}, [&](tcp::options own) {
             own.interfaces = interfaces[static_cast<std::size_t>(own.rank)];
             tcp::run([](auto& net) { sum_rightly(net, 100'000); }, own);
         }))
        CHECK(ranks::text_of(each) == "");
}

TEST_CASE("ranks of which one loses patience soon do not lose each other") {
    for (const auto& each : ranks::on_threads(3, {.meeting = ranks::free_point()}, [](tcp::options own) {
             if (own.rank == 1) own.patience = milliseconds(800);
             tcp::run(
                 [](auto& net) {
                     sum_rightly(net);
                     std::this_thread::sleep_for(std::chrono::milliseconds(2000));
                     sum_rightly(net);
                 },
                 own);
         }))
        CHECK(ranks::text_of(each) == "");
}

TEST_CASE("a job after the other meets at the same point") {
    for (const auto& each : ranks::on_threads(3, {.meeting = ranks::free_point()}, [](const tcp::options& own) {
             for (int job = 0; job < 5; ++job) tcp::run([](auto& net) { sum_rightly(net); }, own);
         }))
        CHECK(ranks::text_of(each) == "");
}

TEST_CASE("an endpoint that has ended listens no more") {
    const std::string point = ranks::free_point();
    for (const auto& each : ranks::on_threads(2, {.meeting = point}, [&](const tcp::options& own) {
             tcp::run([](auto& net) { sum_rightly(net); }, own);
             if (own.rank == 0) CHECK(tcp::detail::listen_at(tcp::detail::resolve(point, 0).front(), 1));
         }))
        CHECK(ranks::text_of(each) == "");
}

TEST_CASE("one rank needs no meeting point, interface or key") {
    tcp::options alone{.meeting = "nowhere", .interfaces = "none0"};
    for (const auto chosen : {tcp::security::keyed, tcp::security::open, tcp::security::encrypted}) {
        alone.security = chosen;
        tcp::run([](auto& net) { sum_rightly(net); }, alone);
    }
}

TEST_CASE("a body may throw anything") {
    const auto thrown = ranks::on_threads(3, {.meeting = ranks::free_point()}, [](const tcp::options& own) {
        tcp::run(
            [](auto& net) {
                if (net.rank() == 1) throw 42;
                sum_rightly(net);
            },
            own);
    });
    CHECK_THROWS_AS(std::rethrow_exception(thrown[1]), int);
    for (const std::size_t rank : {0U, 2U}) {
        REQUIRE(thrown[rank] != nullptr);
        try {
            std::rethrow_exception(thrown[rank]);
        } catch (const error& caught) {
            CHECK(caught.culprit() == 1);
        }
    }
}
