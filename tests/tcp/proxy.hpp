// A proxy that stands before the ranks of a job and cuts the connections through it.
#pragma once

#include <rill/transport/tcp.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace ranks {

/// One thread carries the bytes of all connections. Each is cut after a random number of bytes, a fourth of them within
/// the handshake; what is on its way is lost.
class cutting_proxy {
    using socket = rill::tcp::detail::socket;

  public:
    explicit cutting_proxy(std::size_t most_bytes, std::uint64_t seed)
        : most_bytes_(most_bytes), random_(seed), carrier_([this] { carry(); }) {}
    ~cutting_proxy() {
        ends_ = true;
        carrier_.join();
    }
    int cuts() const { return cuts_; }
    /// From now on the connections that there are carry nothing, and do not end.
    void fall_silent() {
        falls_silent_ = true;
        while (falls_silent_) std::this_thread::yield();
    }
    /// The same for all connections to come: they are accepted, and nothing follows.
    void part() {
        is_parted_ = true;
        fall_silent();
    }

    /// Where to reach a rank that listens at `to`.
    rill::tcp::detail::socket_address stand_before(const rill::tcp::detail::socket_address& to) {
        using namespace rill::tcp::detail;
        socket made = listen_at(resolve("127.0.0.1:0", rill::no_rank).front(), 64);
        const socket_address here = socket_address::local_of(made);
        const std::lock_guard lock(mutex_);
        added_.push_back({std::move(made), to});
        return here;
    }

  private:
    struct gate {
        socket listens;
        rill::tcp::detail::socket_address to;
    };
    struct line {
        socket ends[2];
        std::size_t left = 0;
        bool closed[2]{};
    };

    std::size_t draw() {
        const std::size_t most = random_() % 4 == 0 ? 300 : most_bytes_;
        return 1 + random_() % most;
    }
    void carry() {
        std::vector<pollfd> polled;
        std::vector<char> bytes(std::size_t{64} << 10);
        while (!ends_) {
            {
                const std::lock_guard lock(mutex_);
                gates_.splice(gates_.end(), added_);
            }
            if (falls_silent_) {
                for (line& each : lines_) each.closed[0] = each.closed[1] = true;
                falls_silent_ = false;
            }
            polled.clear();
            for (const gate& each : gates_) polled.push_back({each.listens.get(), POLLIN, 0});
            for (const line& each : lines_)
                for (int end = 0; end < 2; ++end)
                    polled.push_back({each.closed[end] ? -1 : each.ends[end].get(), POLLIN, 0});
            ::poll(polled.data(), polled.size(), 2);
            std::size_t i = gates_.size();
            for (auto each = lines_.begin(); each != lines_.end(); i += 2) {
                bool lives = true;
                for (std::size_t end = 0; end < 2 && lives; ++end)
                    if (polled[i + end].revents != 0) lives = pass(*each, end, bytes);
                each = lives ? std::next(each) : lines_.erase(each);
            }
            i = 0;
            for (auto each = gates_.begin(); each != gates_.end(); ++i)
                each = admit(*each, polled[i].revents) ? std::next(each) : gates_.erase(each);
        }
    }
    bool admit(gate& at, short events) {
        if (events == 0) return true;
        socket from(::accept4(at.listens.get(), nullptr, nullptr, SOCK_CLOEXEC));
        socket to = rill::tcp::detail::start_connecting(at.to);
        pollfd under_way{.fd = to.get(), .events = POLLOUT, .revents = 0};
        ::poll(&under_way, 1, 5000);
        if (!to) return false;
        line made;
        made.left = draw();
        made.closed[0] = made.closed[1] = is_parted_;
        made.ends[0] = std::move(from);
        made.ends[1] = std::move(to);
        lines_.push_back(std::move(made));
        return true;
    }
    bool pass(line& on, std::size_t from, std::vector<char>& bytes) {
        const std::size_t most = std::min(bytes.size(), on.left);
        const ssize_t got = ::recv(on.ends[from].get(), bytes.data(), most, MSG_DONTWAIT);
        if (got < 0) return errno == EAGAIN;
        if (got == 0) {
            ::shutdown(on.ends[1 - from].get(), SHUT_WR);
            on.closed[from] = true;
            return !on.closed[1 - from];
        }
        std::size_t sent = 0;
        while (sent < static_cast<std::size_t>(got)) {
            pollfd one{on.ends[1 - from].get(), POLLOUT, 0};
            ::poll(&one, 1, 100);
            const ssize_t took =
                ::send(one.fd, bytes.data() + sent, static_cast<std::size_t>(got) - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (took < 0 && errno != EAGAIN) return false;
            if (took > 0) sent += static_cast<std::size_t>(took);
        }
        on.left -= static_cast<std::size_t>(got);
        if (on.left != 0) return true;
        ++cuts_;
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        if (random_() % 2 == 0)
            for (const socket& each : on.ends)
                ::setsockopt(each.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        return false;
    }

    std::size_t most_bytes_;
    std::mt19937_64 random_;
    std::mutex mutex_;
    std::list<gate> added_;
    std::list<gate> gates_;
    std::list<line> lines_;
    std::atomic<int> cuts_{0};
    std::atomic<bool> ends_{false}, falls_silent_{false}, is_parted_{false};
    std::thread carrier_;
};

}  // namespace ranks
