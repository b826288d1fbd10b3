// usage: bench_tcp_strangers press POINT COUNT        until it is ended
//        bench_tcp_strangers memory SECURITY COUNT SECONDS
// Strangers that repeat the first words of a rank, which they have recorded, and connect anew when they are sent away.
// `press` sends so many to POINT (host:port). `memory` lets two ranks meet, sends so many to rank 0, and prints by how
// many MiB its memory has grown at most meanwhile.
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "two_processes.hpp"

namespace {

namespace tcp = rill::tcp::detail;

/// Ends a child process when it goes out of scope.
class child {
  public:
    template <class Body>
    explicit child(Body&& body) : id_(::fork()) {
        if (id_ != 0) return;
        try {
            body();
        } catch (const std::exception&) {  // such as that rank 0 has not come
        }
        ::_exit(0);
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
    }

  private:
    pid_t id_;
};

rill::tcp::options options_of(int rank, const std::string& meeting, const std::string& security, const char* key) {
    rill::tcp::options made{.rank = rank, .ranks = 2, .meeting = meeting};
    if (security == "encrypted") made.security = rill::tcp::security::encrypted;
    made.key = rill::tcp::key::from_text(key);
    return made;
}

/// What a rank says first to the one that it connects to.
std::vector<std::byte> first_words(const std::string& security) {
    const tcp::socket listener = tcp::listen_at(tcp::resolve("127.0.0.1:0", 0).front(), 1);
    const std::string point = tcp::socket_address::local_of(listener).text();
    const child rank(
        [&] { rill::tcp::run([](auto&) {}, options_of(1, point, security, "a key that is known to nobody")); });
    pollfd one{.fd = listener.get(), .events = POLLIN, .revents = 0};
    ::poll(&one, 1, 10'000);
    const tcp::socket heard(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::vector<std::byte> words(2048);
    const ssize_t count = ::recv(heard.get(), words.data(), words.size(), 0);
    if (count <= 0) throw std::runtime_error("a rank has said nothing");
    words.resize(static_cast<std::size_t>(count));
    return words;
}

/// Never returns.
void press(const std::string& point, int count, const std::vector<std::byte>& words) {
    const auto where = tcp::resolve(point, rill::no_rank).front();
    std::vector<tcp::socket> all(static_cast<std::size_t>(count));
    const int events = ::epoll_create1(EPOLL_CLOEXEC);
    const auto come = [&](tcp::socket& each) {
        each = tcp::start_connecting(where);
        if (!each) return;
        epoll_event of{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP, .data = {.ptr = &each}};
        ::epoll_ctl(events, EPOLL_CTL_ADD, each.get(), &of);
    };
    for (;;) {
        for (tcp::socket& each : all)
            if (!each) come(each);
        std::array<epoll_event, 256> ready{};
        const int found = ::epoll_wait(events, ready.data(), static_cast<int>(ready.size()), 100);
        for (int i = 0; i < found; ++i) {
            tcp::socket& each = *static_cast<tcp::socket*>(ready[static_cast<std::size_t>(i)].data.ptr);
            const auto what = ready[static_cast<std::size_t>(i)].events;
            if ((what & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0) {
                each = tcp::socket();
                continue;
            }
            if ((what & EPOLLOUT) == 0) continue;
            if (::send(each.get(), words.data(), words.size(), MSG_NOSIGNAL) < 0) continue;
            epoll_event of{.events = EPOLLRDHUP, .data = {.ptr = &each}};
            ::epoll_ctl(events, EPOLL_CTL_MOD, each.get(), &of);
        }
    }
}

double resident_mib() {
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0, resident = 0;
    file >> all >> resident;
    return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void print_memory(const std::string& security, int count, double time) {
    const auto words = first_words(security);
    const std::string point = two_processes::free_point();
    const char* const key = "a key that strangers do not know";
    const rill::channel on{.context = 1};
    const child other([&] {
        rill::tcp::run([&](auto& net) { net.receive(0, on, rill::deadline::never); },
                       options_of(1, point, security, key));
    });
    rill::tcp::run(
        [&](auto& net) {
            const double before = resident_mib();
            double most = before;
            {
                const child strangers([&] { press(point, count, words); });
                const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(time);
                while (std::chrono::steady_clock::now() < end) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                    most = std::max(most, resident_mib());
                }
            }
            net.post(1, on, rill::byte_pieces{});
            std::printf("{\"mib\": %.3f}\n", most - before);
        },
        options_of(0, point, security, key));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (!(what == "press" && argc == 4) && !(what == "memory" && argc == 5))
        return std::fprintf(stderr, "usage: %s press POINT COUNT | memory SECURITY COUNT SECONDS\n", argv[0]), 2;
    try {
        rlimit files{};
        ::getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &files);
        if (what == "press") press(argv[2], std::atoi(argv[3]), first_words("keyed"));
        print_memory(argv[2], std::atoi(argv[3]), std::atof(argv[4]));
        return 0;
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
