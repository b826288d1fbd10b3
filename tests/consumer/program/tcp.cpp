// Two ranks that are connected by TCP, threads of this process.
#include "sums_up.hpp"

#include <rill/transport/tcp.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <string>
#include <thread>

namespace {

/// A port of this host that nobody listens at.
int free_port() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    ::bind(probe, reinterpret_cast<sockaddr*>(&at), size);
    ::getsockname(probe, reinterpret_cast<sockaddr*>(&at), &size);
    ::close(probe);
    return ntohs(at.sin_port);
}

}  // namespace

int main() {
    const std::string meeting = "127.0.0.1:" + std::to_string(free_port());
    bool right[2] = {false, false};
    const auto act = [&](int rank) {
        rill::tcp::run([&](auto& net) { right[rank] = sums_up(net); }, {.rank = rank, .ranks = 2, .meeting = meeting});
    };
    std::thread other([&] { act(1); });
    act(0);
    other.join();
    return right[0] && right[1] ? 0 : 1;
}
