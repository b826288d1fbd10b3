// Ranks that are threads of this process and meet on the loopback interface.
#pragma once

#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/tcp.hpp>

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ranks {

/// A port of the host that nobody listens at. It stays bound, so that tests in other processes are not given it as
/// well.
inline std::string free_point(const std::string& host = "127.0.0.1") {
    namespace net = rill::tcp::detail;
    static std::mutex mutex;
    static std::deque<net::socket> bound;
    const net::socket_address any_port = net::resolve(host + ":0", rill::no_rank).front();
    net::socket made = net::make_socket(any_port);
    const int on = 1;
    ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    REQUIRE(::bind(made.get(), any_port.raw(), any_port.size) == 0);
    const int port = net::socket_address::local_of(made).port();
    const std::lock_guard lock(mutex);
    bound.push_back(std::move(made));
    if (bound.size() > 100) bound.pop_front();
    return host + ":" + std::to_string(port);
}

/// Dials the meeting point as `own` until somebody has agreed or refused. The test fails where nobody has within 30 s.
inline rill::tcp::detail::pending_connection dial(const std::string& point,
                                                  const rill::tcp::detail::handshake::identity& own,
                                                  const rill::tcp::detail::credentials& by = {}) {
    using namespace rill::tcp::detail;
    const rill::time_point last = wall_clock() + rill::seconds(30);
    for (;;) {
        pending_connection made =
            pending_connection::dialled(start_connecting(resolve(point, own.rank).front()), own, {}, by, wall_clock());
        while (made.proceed() && !made.is_settled() && wall_clock() < last) {
            if (made.now() == handshake::state::asks) made.prove(0);
            pollfd one{.fd = made.on().get(), .events = made.wanted(), .revents = 0};
            wait_for({&one, 1}, wall_clock() + rill::seconds(1));
        }
        if (made.is_settled()) return made;
        if (wall_clock() >= last) FAIL("nobody has answered at ", point);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

/// All ranks encrypt what they say, by the same key.
inline void encrypt(rill::tcp::options& chosen) {
    chosen.security = rill::tcp::security::encrypted;
    chosen.key = rill::tcp::key::from_text("0123456789abcdefghijklmnopqrstuv");
}

/// A rank that has met the others in a way of its own.
class met : public rill::tcp::endpoint {
  public:
    met(rill::tcp::detail::mesh&& others, const rill::tcp::options& chosen)
        : rill::tcp::endpoint(std::move(others), chosen) {}

    template <class Body>
    void run(Body& body) {
        engine_->run([&] { body(*this); });
    }
};

/// What `act()` throws; null where it returns.
template <class Act>
std::exception_ptr thrown_by(Act&& act) {
    try {
        act();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

/// Calls `act(options)` on a thread for each rank; returns what they threw.
template <class Act>
std::vector<std::exception_ptr> on_threads(int count, rill::tcp::options chosen, Act&& act) {
    std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    chosen.ranks = count;
    for (int rank = 0; rank < count; ++rank) {
        chosen.rank = rank;
        threads.emplace_back(
            [&, rank, own = chosen] { thrown[static_cast<std::size_t>(rank)] = thrown_by([&] { act(own); }); });
    }
    for (std::thread& each : threads) each.join();
    return thrown;
}

/// Runs `body(net)` on `count` ranks, and throws what one of them threw: rather the exception of its body than what the
/// others heard of it.
template <class Body>
void run(int count, Body&& body, rill::tcp::options chosen = {}, const std::string& host = "127.0.0.1") {
    chosen.meeting = free_point(host);
    const auto thrown = on_threads(count, chosen, [&](const rill::tcp::options& own) { rill::tcp::run(body, own); });
    std::exception_ptr heard;
    for (const auto& each : thrown) {
        if (each == nullptr) continue;
        try {
            std::rethrow_exception(each);
        } catch (const rill::error&) {
            if (heard == nullptr) heard = each;
        }
    }
    if (heard != nullptr) std::rethrow_exception(heard);
}

inline std::string text_of(const std::exception_ptr& thrown) {
    if (thrown == nullptr) return "";
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& caught) {
        return caught.what();
    }
}

/// `no_rank` of what is no `rill::error`.
inline rill::rank_t culprit_of(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const rill::error& caught) {
        return caught.culprit();
    } catch (...) {
        return rill::no_rank;
    }
}

}  // namespace ranks
