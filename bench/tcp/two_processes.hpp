// Two processes of this host with a bare connection, and a point where they can meet.
#pragma once

#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/tcp.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace two_processes {

namespace tcp = rill::tcp::detail;

/// Two ends of a connection whose calls block.
inline std::pair<tcp::socket, tcp::socket> connect_two() {
    const tcp::socket listener = tcp::listen_at(tcp::resolve("127.0.0.1:0", 0).front(), 1);
    auto dialled = tcp::start_connecting(tcp::socket_address::local_of(listener));
    pollfd one{.fd = listener.get(), .events = POLLIN, .revents = 0};
    tcp::wait_for({&one, 1}, tcp::wall_clock() + rill::seconds(5));
    tcp::socket accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!dialled || !accepted) throw std::runtime_error("no connection over loopback");
    ::fcntl(dialled.get(), F_SETFL, 0);
    for (const auto* each : {&dialled, &accepted}) tcp::tune(*each, rill::seconds(10));
    return {std::move(dialled), std::move(accepted)};
}
inline std::string free_point() {
    const tcp::socket listener = tcp::listen_at(tcp::resolve("127.0.0.1:0", 0).front(), 1);
    return "127.0.0.1:" + std::to_string(tcp::socket_address::local_of(listener).port());
}

/// Of this process.
inline double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& of) {
        return static_cast<double>(of.tv_sec) + 1e-6 * static_cast<double>(of.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

inline void print(const char* name, const std::vector<double>& all, const char* end) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < all.size(); ++i) std::printf("%s%.9f", i == 0 ? "" : ", ", all[i]);
    std::printf("]%s", end);
}

/// Calls `measure(rank, meeting, bare)` in two processes. Returns what main must return.
template <class Measure>
int run(const char* program, Measure&& measure) {
    try {
        const auto [mine, others] = connect_two();
        const std::string meeting = free_point();
        const pid_t child = ::fork();
        const rill::rank_t rank = child == 0 ? 1 : 0;
        measure(rank, meeting, rank == 0 ? mine : others);
        int status = 0;
        return child == 0 || (::waitpid(child, &status, 0) == child && status == 0) ? 0 : 1;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", program, failure.what());
        return 1;
    }
}

}  // namespace two_processes
