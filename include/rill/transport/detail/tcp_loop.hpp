#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_options.hpp>
#include <rill/transport/detail/tcp_polling.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <span>
#include <thread>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Waits for sockets, by epoll. All calls are made under one lock, which a wait gives up meanwhile. One of the threads
/// that wait, the driver, waits for the sockets; the others, until they are woken.
class loop {
  public:
    static constexpr std::uint64_t signal = ~std::uint64_t{0};  ///< the name that no socket may have

    explicit loop(rank_t rank, const polling& polls = polling(false))
        : rank_(rank),
          polls_(polls),
          all_(::epoll_create1(EPOLL_CLOEXEC)),
          signal_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (!all_ || !signal_) fail("cannot wait for sockets");
        watch(signal_, signal, false);
    }

    /// Tells of the socket by `name` when it can be read, and where it `writes`, when it can be written.
    void watch(const socket& which, std::uint64_t name, bool writes) { control(EPOLL_CTL_ADD, which, name, writes); }
    void change(const socket& which, std::uint64_t name, bool writes) { control(EPOLL_CTL_MOD, which, name, writes); }
    void forget(const socket& which) noexcept { ::epoll_ctl(all_.get(), EPOLL_CTL_DEL, which.get(), nullptr); }

    /// Calls `ready(name, events)` for each socket that is ready now.
    template <class Ready>
    void look(Ready&& ready) {
        tell(::epoll_wait(all_.get(), events_, most_events, 0), events_, ready);
    }
    /// Waits until a socket is ready, `wake` is called, or `timer` or `until` has passed.
    template <class Lock, class Ready>
    void wait(Lock& lock, deadline timer, deadline until, Ready&& ready) {
        if (is_driven_) {
            ++followers_;
            if (until.is_never())
                woken_.wait(lock);
            else
                woken_.wait_until(lock, clock_time(until));
            --followers_;
            return;
        }
        is_driven_ = true;
        epoll_event found[most_events];
        const bool polls = polls_.begins();
        const deadline end = std::min(timer, until);
        lock.unlock();
        const int polled = polls ? poll(found, end) : 0;
        const int count = polled != 0 ? polled : sleep(found, end);
        lock.lock();
        if (polls) polls_.ended(polled > 0);
        is_driven_ = false;
        tell(count, found, ready);
    }
    /// Lets all threads look again that wait in `wait`.
    void wake() noexcept {
        if (followers_ != 0) woken_.notify_all();
        if (is_driven_) raise();
    }

    /// Lets the threads that wait for sockets look at their timers again.
    void hurry() noexcept {
        if (is_driven_ || is_attended_) raise();
    }

    // A thread of its own attends to the sockets while no other waits.

    /// Waits until a socket is ready, or the timer has passed. `wake` does not end it, `dismiss` does.
    template <class Lock, class Ready>
    void attend(Lock& lock, deadline timer, Ready&& ready) {
        epoll_event found[most_events];
        is_attended_ = true;
        lock.unlock();
        const int count = sleep(found, timer);
        lock.lock();
        is_attended_ = false;
        tell(count, found, ready);
    }
    /// Waits for a time, or until it is dismissed.
    template <class Lock>
    void rest(Lock& lock, duration time) {
        dismissed_.wait_for(lock, std::chrono::nanoseconds(time.ns));
    }
    void dismiss() noexcept {
        dismissed_.notify_all();
        if (is_attended_) raise();
    }

  private:
    static constexpr int most_events = 32;
    using system_time = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

    static system_time clock_time(deadline until) { return system_time(std::chrono::nanoseconds(until.at.ns)); }

    [[noreturn]] void fail(const char* what) const {
        throw library_error(rank_, std::string(what) + ": " + system_text());
    }
    void control(int what, const socket& which, std::uint64_t name, bool writes) {
        epoll_event event{};
        event.events = EPOLLIN | (writes ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
        event.data.u64 = name;
        if (::epoll_ctl(all_.get(), what, which.get(), &event) != 0) fail("cannot wait for a socket");
    }
    /// Returns the number of events, 0 where none came.
    int poll(std::span<epoll_event, most_events> found, deadline until) const {
        const deadline end(wall_clock() + polling::longest);
        for (int polls = 1;; ++polls) {
            const int count = ::epoll_wait(all_.get(), found.data(), most_events, 0);
            if (count != 0) return count;
            const deadline now(wall_clock());
            if (now >= until || (polls >= polling::fewest && now >= end)) return 0;
            std::this_thread::yield();
        }
    }
    /// Whole milliseconds are waited for by epoll, the rest by poll, which counts nanoseconds.
    int sleep(std::span<epoll_event, most_events> found, deadline until) const {
        constexpr std::int64_t longest = 3'600'000, per_millisecond = 1'000'000;
        const std::int64_t left = until.is_never() ? longest * per_millisecond : (until.at - wall_clock()).ns;
        if (left >= per_millisecond || left <= 0)
            return ::epoll_wait(all_.get(), found.data(), most_events,
                                static_cast<int>(std::clamp<std::int64_t>(left / per_millisecond, 0, longest)));
        pollfd one{.fd = all_.get(), .events = POLLIN, .revents = 0};
        const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(left)};
        if (::ppoll(&one, 1, &time, nullptr) <= 0) return 0;
        return ::epoll_wait(all_.get(), found.data(), most_events, 0);
    }
    template <class Ready>
    void tell(int count, const epoll_event* found, Ready&& ready) {
        for (int i = 0; i < count; ++i) {
            if (found[i].data.u64 != signal)
                ready(found[i].data.u64, static_cast<std::uint32_t>(found[i].events));
            else if (!is_driven_)  // else it is meant for the driver, which has not come back
                is_raised_ = false, ::eventfd_read(signal_.get(), &ignored_);
        }
    }
    void raise() noexcept {
        if (is_raised_) return;
        is_raised_ = true;
        ::eventfd_write(signal_.get(), 1);
    }

    rank_t rank_;
    polling polls_;
    socket all_, signal_;
    bool is_driven_ = false, is_attended_ = false, is_raised_ = false;
    int followers_ = 0;
    eventfd_t ignored_ = 0;
    std::condition_variable_any woken_, dismissed_;
    epoll_event events_[most_events]{};
};

}}}  // namespace rill::RILL_ABI::tcp::detail
