// Messages of 16 MiB from one process to another over loopback: rill::tcp, plain and encrypted, and bare sockets that
// block, in writes of 1 MiB, by turns. Prints the seconds of a message and the CPU seconds of both processes per GB, in
// each turn. The receiver checks all bytes of the last message of a turn.
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include <sys/socket.h>
#include <algorithm>
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

constexpr std::size_t size = std::size_t{16} << 20, written_at_once = std::size_t{1} << 20;

void send_all(const tcp::detail::socket& to, byte_view bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(to.get(), bytes.data(), std::min(bytes.size(), written_at_once), MSG_NOSIGNAL);
        if (sent <= 0) throw std::runtime_error("send");
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
}
void receive_all(const tcp::detail::socket& from, byte_span bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::recv(from.get(), bytes.data(), bytes.size(), 0);
        if (got <= 0) throw std::runtime_error("recv");
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

struct figures {
    std::vector<double> seconds{}, cpu_per_gb{};
};

/// One turn of so many messages from rank 0 to rank 1; the figures are those of rank 0.
template <class Send, class Receive>
void take_turn(rank_t rank, int messages, std::vector<std::byte>& bytes, int turn, const tcp::detail::socket& bare,
               figures& to, Send&& send, Receive&& receive) {
    const auto fill = static_cast<std::byte>(turn + 1);
    std::fill(bytes.begin(), bytes.end(), rank == 0 ? fill : std::byte{0});
    const auto travel = [&](int count) {
        for (int i = 0; i < count; ++i) rank == 0 ? send() : receive();
        std::byte end{};  // all has come
        rank == 0 ? receive_all(bare, {&end, 1}) : send_all(bare, {&end, 1});
    };
    travel(1);
    const double cpu_start = two_processes::cpu_seconds();
    const time_point start = tcp::detail::wall_clock();
    travel(messages);
    const double seconds = (tcp::detail::wall_clock() - start).seconds();
    double cpu = two_processes::cpu_seconds() - cpu_start, other = 0;
    if (rank == 1) {
        if (std::any_of(bytes.begin(), bytes.end(), [=](std::byte each) { return each != fill; }))
            throw std::runtime_error("a byte is wrong");
        return send_all(bare, std::as_bytes(std::span(&cpu, 1)));
    }
    receive_all(bare, std::as_writable_bytes(std::span(&other, 1)));
    to.seconds.push_back(seconds / messages);
    to.cpu_per_gb.push_back((cpu + other) * 1e9 / (static_cast<double>(size) * messages));
}

void measure(rank_t rank, const std::string& meeting, const std::string& secret_meeting,
             const tcp::detail::socket& line, int turns, int messages) {
    figures bare, plain, encrypted;
    std::vector<std::byte> bytes(size);
    const byte_span into = bytes;
    const channel on{.context = 1};
    tcp::options chosen{.rank = rank, .ranks = 2, .meeting = meeting};
    tcp::options secured = chosen;
    secured.meeting = secret_meeting;
    secured.security = tcp::security::encrypted;
    secured.key = tcp::key::from_text("a key that is no secret");
    const auto over = [&](auto& net, int turn, figures& to) {
        take_turn(
            rank, messages, bytes, turn, line, to, [&] { net.post(1, on, byte_view(bytes)).wait(deadline::never); },
            [&] { net.receive_into(0, on, std::span(&into, 1), deadline::never); });
    };
    tcp::run(
        [&](auto& clear) {
            tcp::run(
                [&](auto& secret) {
                    for (int turn = 0; turn < turns; ++turn) {
                        take_turn(
                            rank, messages, bytes, turn, line, bare, [&] { send_all(line, bytes); },
                            [&] { receive_all(line, bytes); });
                        over(clear, turn, plain);
                        over(secret, turn, encrypted);
                    }
                },
                secured);
        },
        chosen);
    if (rank != 0) return;
    std::printf("{");
    two_processes::print("bare", bare.seconds, ", ");
    two_processes::print("plain", plain.seconds, ", ");
    two_processes::print("encrypted", encrypted.seconds, ", ");
    two_processes::print("bare_cpu", bare.cpu_per_gb, ", ");
    two_processes::print("plain_cpu", plain.cpu_per_gb, ", ");
    two_processes::print("encrypted_cpu", encrypted.cpu_per_gb, "}\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s TURNS MESSAGES\n", argv[0]);
        return 2;
    }
    const std::string other = two_processes::free_point();
    return two_processes::run(argv[0], [&](rank_t rank, const std::string& meeting, const tcp::detail::socket& line) {
        measure(rank, meeting, other, line, std::atoi(argv[1]), std::atoi(argv[2]));
    });
}
