// 64 bytes there and back between two processes over loopback, by turns: rill::tcp, bare sockets that block, and bare
// sockets that poll. Prints the seconds of a trip in each turn.
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include <sys/socket.h>
#include <sys/types.h>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "two_processes.hpp"

namespace {

using namespace rill;

constexpr std::size_t size = 64;
constexpr int warm_up = 100;

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

void measure(rank_t rank, const std::string& meeting, const tcp::detail::socket& line, int turns, int trips) {
    std::vector<double> blocking, polling, over_tcp;
    std::array<std::byte, size> bytes{};
    const auto send = [&] {
        if (::send(line.get(), bytes.data(), size, 0) != ssize_t{size}) throw std::runtime_error("send");
    };
    const auto receive = [&] {
        if (::recv(line.get(), bytes.data(), size, MSG_WAITALL) != ssize_t{size}) throw std::runtime_error("recv");
    };
    const auto poll = [&] {
        ssize_t got = -1;
        while (got < 0) got = ::recv(line.get(), bytes.data(), size, MSG_DONTWAIT);
        if (got != ssize_t{size}) throw std::runtime_error("recv");
    };
    tcp::run(
        [&](auto& net) {
            const channel on{.context = 1};
            const byte_span into = bytes;
            for (int turn = 0; turn < turns; ++turn) {
                blocking.push_back(seconds_per_trip(rank == 0, trips, send, receive));
                polling.push_back(seconds_per_trip(rank == 0, trips, send, poll));
                over_tcp.push_back(seconds_per_trip(
                    rank == 0, trips, [&] { net.post(1 - rank, on, byte_view(bytes)); },
                    [&] { net.receive_into(1 - rank, on, std::span(&into, 1), deadline::never); }));
            }
        },
        {.rank = rank, .ranks = 2, .meeting = meeting});
    if (rank != 0) return;
    std::printf("{");
    two_processes::print("blocking", blocking, ", ");
    two_processes::print("polling", polling, ", ");
    two_processes::print("tcp", over_tcp, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s TURNS TRIPS\n", argv[0]);
        return 2;
    }
    return two_processes::run(argv[0], [&](rank_t rank, const std::string& meeting, const tcp::detail::socket& line) {
        measure(rank, meeting, line, std::atoi(argv[1]), std::atoi(argv[2]));
    });
}
