#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include "ranks.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

using namespace rill;

namespace {

constexpr duration limit = seconds(60);

void say(tcp::endpoint& net, rank_t peer, channel on, std::uint32_t number) {
    byte_pieces pieces;
    pieces.push(std::as_bytes(std::span(&number, 1)));
    net.post(peer, on, pieces);
}
std::uint32_t hear(tcp::endpoint& net, rank_t peer, channel on) {
    std::uint32_t number = 0;
    const byte_span into = std::as_writable_bytes(std::span(&number, 1));
    REQUIRE(net.receive_into(peer, on, std::span(&into, 1), net.now() + limit));
    return number;
}

}  // namespace

TEST_CASE("threads that wait at once are woken each by its own messages") {
    constexpr std::uint32_t rounds = 300;
    constexpr std::uint64_t talks = 3;
    ranks::run(2, [&](tcp::endpoint& net) {
        const rank_t peer = 1 - net.rank();
        const auto talk = [&](std::uint64_t which) {
            const channel on{.context = 1 + which};
            for (std::uint32_t i = 0; i < rounds; ++i) {
                if (net.rank() == 0) say(net, peer, on, i);
                CHECK(hear(net, peer, on) == i);
                if (net.rank() == 1) say(net, peer, on, i);
            }
        };
        std::vector<tcp::activity> others;
        for (std::uint64_t i = 1; i < talks; ++i) others.push_back(net.spawn([&, i] { talk(i); }));
        talk(0);
        for (auto& each : others) each.join();
    });
}

TEST_CASE("threads of one rank wake each other while nothing comes from outside") {
    ranks::run(2, [&](tcp::endpoint& net) {
        if (net.rank() == 1) return;
        tcp::queue<int> there{net}, back{net};
        auto other = net.spawn([&] {
            while (const auto taken = there.pop(net.now() + limit)) back.push(*taken + 1);
        });
        for (int i = 0; i < 300; ++i) {
            there.push(i);
            CHECK(back.pop(net.now() + limit) == i + 1);
        }
        there.close();
        other.join();
    });
}

TEST_CASE("small messages go there and back while a large one is on its way") {
    constexpr std::size_t size = std::size_t{64} << 20;
    constexpr channel bulk{.context = 1}, notes{.context = 2};
    constexpr std::uint32_t end = ~std::uint32_t{0};
    ranks::run(2, [&](tcp::endpoint& net) {
        const rank_t peer = 1 - net.rank();
        const auto memory = std::make_unique_for_overwrite<std::byte[]>(size);
        const byte_span all(memory.get(), size);
        if (net.rank() == 0) {
            std::memset(memory.get(), 7, size);
            byte_pieces pieces;
            pieces.push(all);
            tcp::sending sent = net.post(peer, bulk, pieces);
            std::uint32_t rounds = 0;
            for (; !sent.done(); ++rounds) {
                say(net, peer, notes, rounds);
                CHECK(hear(net, peer, notes) == rounds);
            }
            say(net, peer, notes, end);
            CHECK(rounds > 2);  // one goes before the large message is asked for, one may still wait when it has come
        } else {
            net.expect(peer, bulk, std::span(&all, 1));
            for (std::uint32_t number = 0; (number = hear(net, peer, notes)) != end;) say(net, peer, notes, number);
            CHECK(net.receive_into(peer, bulk, std::span(&all, 1), net.now() + limit));
            CHECK(memory[size - 1] == std::byte{7});
        }
    });
}

TEST_CASE("a message goes on while its sender does not call") {
    tcp::options chosen{.eager_bytes = 1024, .sends_unasked = false, .window_bytes = 100'000};
    std::promise<void> arrived;
    ranks::run(
        2,
        [&](tcp::endpoint& net) {
            const channel on{.context = 1};
            constexpr std::size_t size = std::size_t{8} << 20;
            if (net.rank() == 0) {
                buffer bytes(size);
                std::memset(bytes.data(), 7, size);
                CHECK(net.post(1, on, std::move(bytes)));
                CHECK(arrived.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready);
            } else {
                const auto heard = net.receive(0, on, net.now() + limit);
                CHECK(heard.has_value());
                arrived.set_value();
                if (heard) CHECK(heard->pieces().size_bytes() == size);
            }
        },
        chosen);
}
