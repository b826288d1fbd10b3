// 64 bytes there and back between two processes over loopback: rill::tcp and bare sockets that block, by turns. Prints
// the seconds of a trip in each turn.
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill;
using tcp::detail::socket_address;

constexpr std::size_t size = 64;
constexpr int warm_up = 100;

/// Two ends of a connection whose calls block.
std::pair<tcp::detail::socket, tcp::detail::socket> connect_two() {
    const tcp::detail::socket listener = tcp::detail::listen_at(tcp::detail::resolve("127.0.0.1:0", 0).front(), 1);
    auto dialled = tcp::detail::connect_to(socket_address::local_of(listener), tcp::detail::wall_clock() + seconds(5));
    tcp::detail::socket accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!dialled || !accepted) throw std::runtime_error("no connection over loopback");
    ::fcntl(dialled.get(), F_SETFL, 0);
    for (const auto* each : {&dialled, &accepted}) tcp::detail::tune(*each, seconds(10));
    return {std::move(dialled), std::move(accepted)};
}
std::string free_point() {
    const tcp::detail::socket listener = tcp::detail::listen_at(tcp::detail::resolve("127.0.0.1:0", 0).front(), 1);
    return "127.0.0.1:" + std::to_string(socket_address::local_of(listener).port());
}

template <class Send, class Receive>
double seconds_per_trip(bool is_first, int trips, Send&& send, Receive&& receive) {
    const auto travel = [&](int count) {
        for (int i = 0; i < count; ++i) {
            if (is_first) send();
            receive();
            if (!is_first) send();
        }
    };
    travel(warm_up);
    const time_point start = tcp::detail::wall_clock();
    travel(trips);
    return (tcp::detail::wall_clock() - start).seconds() / trips;
}

void print(const char* name, const std::vector<double>& all, const char* end) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < all.size(); ++i) std::printf("%s%.9f", i == 0 ? "" : ", ", all[i]);
    std::printf("]%s", end);
}

void measure(rank_t rank, const std::string& meeting, const tcp::detail::socket& line, int turns, int trips) {
    std::vector<double> bare, over_tcp;
    std::array<std::byte, size> bytes{};
    const auto send = [&] {
        if (::send(line.get(), bytes.data(), size, 0) != ssize_t{size}) throw std::runtime_error("send");
    };
    const auto receive = [&] {
        if (::recv(line.get(), bytes.data(), size, MSG_WAITALL) != ssize_t{size}) throw std::runtime_error("recv");
    };
    tcp::run(
        [&](auto& net) {
            const channel on{.context = 1};
            const byte_span into = bytes;
            for (int turn = 0; turn < turns; ++turn) {
                bare.push_back(seconds_per_trip(rank == 0, trips, send, receive));
                over_tcp.push_back(seconds_per_trip(
                    rank == 0, trips, [&] { net.post(1 - rank, on, byte_view(bytes)); },
                    [&] { net.receive_into(1 - rank, on, std::span(&into, 1), deadline::never); }));
            }
        },
        {.rank = rank, .ranks = 2, .meeting = meeting});
    if (rank != 0) return;
    std::printf("{");
    print("bare", bare, ", ");
    print("tcp", over_tcp, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s TURNS TRIPS\n", argv[0]);
        return 2;
    }
    try {
        const auto [mine, others] = connect_two();
        const std::string meeting = free_point();
        const pid_t child = ::fork();
        const rank_t rank = child == 0 ? 1 : 0;
        measure(rank, meeting, rank == 0 ? mine : others, std::atoi(argv[1]), std::atoi(argv[2]));
        int status = 0;
        return child == 0 || (::waitpid(child, &status, 0) == child && status == 0) ? 0 : 1;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
