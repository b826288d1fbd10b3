// Processes at a meeting point that are not the ranks they stand for.
#pragma once

#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/tcp.hpp>

#include "../support/few_descriptors.hpp"
#include "ranks.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <utility>

namespace impostors {

/// Dials the meeting point until somebody listens there and has read what a rank of another version says.
inline void come_with_another_version(const std::string& point) {
    using namespace rill::tcp::detail;
    for (const rill::time_point last = wall_clock() + rill::seconds(30); wall_clock() < last;) {
        const auto stranger = start_connecting(resolve(point, rill::no_rank).front());
        const auto await = [&](short events) {
            pollfd one{.fd = stranger.get(), .events = events, .revents = 0};
            wait_for({&one, 1}, last);
        };
        await(POLLOUT);
        if (::send(stranger.get(), "rill\x07", 6, MSG_NOSIGNAL) == 6) return await(POLLIN);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    FAIL("nobody listens at ", point);
}

/// What rank 0 of 2 throws that meets by the file `path`. A process dials it and says nothing; from then on, for as
/// long as `lack`, there are no descriptors.
inline std::exception_ptr thrown_without_descriptors(const std::string& path, rill::duration timeout,
                                                     std::chrono::milliseconds lack) {
    using namespace rill::tcp::detail;
    auto met = std::async(std::launch::async, [&] {
        return ranks::thrown_by(
            [&] { rill::tcp::endpoint net({.ranks = 2, .meeting = "file:" + path, .meeting_timeout = timeout}); });
    });
    while (!std::filesystem::exists(path))  // until rank 0 listens
        REQUIRE(met.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
    const socket_address where = resolve(meeting_file::read(path).addresses.front(), rill::no_rank).front();
    const rill::tcp::detail::socket guest = make_socket(where);
    {
        const few_descriptors now;
        ::connect(guest.get(), where.raw(), where.size);
        met.wait_for(lack);
    }
    return met.get();
}

/// What rank 1 throws where `answer(connection)` is what a process says to each that dials the meeting point.
/// `timeout`: of the meeting, which may have a long one where it ends before.
template <class Answer>
std::exception_ptr thrown_at(Answer&& answer, rill::duration timeout = rill::milliseconds(500)) {
    using namespace rill::tcp::detail;
    const auto listener = listen_at(resolve("127.0.0.1:0", rill::no_rank).front(), 64);
    std::atomic<bool> is_over = false;
    std::thread stranger([&] {
        std::deque<rill::tcp::detail::socket> held;
        while (!is_over) {
            pollfd one{.fd = listener.get(), .events = POLLIN, .revents = 0};
            ::poll(&one, 1, 5);
            rill::tcp::detail::socket came(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (came) held.push_back(answer(std::move(came)));
        }
    });
    const rill::tcp::options own{
        .rank = 1, .ranks = 2, .meeting = socket_address::local_of(listener).text(), .meeting_timeout = timeout};
    const std::exception_ptr thrown = ranks::thrown_by([&] { rill::tcp::endpoint net(own); });
    is_over = true;
    stranger.join();
    return thrown;
}
/// Its text.
template <class Answer>
std::string told_at(Answer&& answer, rill::duration timeout = rill::milliseconds(500)) {
    return ranks::text_of(thrown_at(std::forward<Answer>(answer), timeout));
}
/// Agrees as rank 0 does.
inline rill::tcp::detail::socket agree(rill::tcp::detail::socket came) {
    using namespace rill::tcp::detail;
    handshake::identity own = rill::tcp::detail::meet({}).own;
    own.why = handshake::purpose::meeting;
    own.ranks = 2;
    const int other = ::dup(came.get());
    pending_connection guest = pending_connection::accepted(std::move(came), own, {}, wall_clock());
    while (guest.proceed() && !guest.is_settled()) {
        if (guest.now() == handshake::state::asks) guest.accept(0);
        pollfd one{.fd = guest.on().get(), .events = guest.wanted(), .revents = 0};
        wait_for({&one, 1}, wall_clock() + rill::seconds(1));
    }
    return rill::tcp::detail::socket(other);
}
inline rill::tcp::detail::socket say(rill::tcp::detail::socket to, const std::string& text) {
    CHECK(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
    return to;
}

}  // namespace impostors
