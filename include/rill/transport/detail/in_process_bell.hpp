#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

inline time_point steady_now() {
    using namespace std::chrono;
    return {duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count()};
}

/// How often a wait polls before it sleeps.
struct polling {
    int spins = 0;
    int yields = 0;
};

/// The threads of one rank wait at it: they read `strokes()`, test their condition, and if it is false, wait for the
/// next stroke. Ringing costs one atomic addition while nobody sleeps.
///
/// It sleeps on a condition variable because the timed waits of libstdc++ 12's semaphores and atomics can lose a
/// wake-up.
class bell {
  public:
    std::uint32_t strokes() const noexcept { return strokes_.load(std::memory_order_acquire); }

    void ring() noexcept {
        // Both sides are sequentially consistent: either this load sees the sleeper, or the sleeper sees the stroke.
        strokes_.fetch_add(1, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
        { const std::lock_guard lock(mutex_); }  // a thread about to sleep has either seen the stroke or sleeps now
        changed_.notify_all();
    }

    /// True when the bell has rung since `seen` was read, false when `until` has passed before that.
    bool wait(std::uint32_t seen, deadline until, polling tries) {
        for (int i = 0; i < tries.spins; ++i) {
            if (strokes() != seen) return true;
            pause();
        }
        for (int i = 0; i < tries.yields; ++i) {
            if (strokes() != seen) return true;
            if (!until.is_never() && steady_now() >= until.at) return false;
            yield();
        }
        return block(seen, until);
    }

    static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    static void yield() noexcept { std::this_thread::yield(); }

  private:
    bool block(std::uint32_t seen, deadline until) {
        const auto rung = [&] { return strokes_.load(std::memory_order_seq_cst) != seen; };
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        bool result = true;
        if (until.is_never()) {
            changed_.wait(lock, rung);
        } else {
            const std::chrono::steady_clock::time_point at{std::chrono::nanoseconds(until.at.ns)};
            result = changed_.wait_until(lock, at, rung);
        }
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return result;
    }

    std::atomic<std::uint32_t> strokes_{0};
    std::atomic<int> sleepers_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
};

/// The bells of one rank. Activities that wait for different events wait at different bells, so that an event wakes
/// only those who wait for it: to wake a few others would cost more than the message.
///
/// Bells live as long as the rank, because a bell may be rung after its waiters have gone.
class bells {
  public:
    /// For messages of a channel and the release of borrowed messages on it. Neighbouring tags have different bells.
    bell& of(channel on) { return all_[1 + (on.context + on.tag) % channels]; }
    /// For everything else.
    bell& common() { return all_[0]; }
    /// For an event or a queue; assigned in turn, so that several share a bell only when there are more than
    /// `meetings`.
    bell& of_meeting() {
        return all_[1 + channels + meetings_made_.fetch_add(1, std::memory_order_relaxed) % meetings];
    }

    void ring_all() noexcept {
        for (bell& each : all_) each.ring();
    }

  private:
    static constexpr std::size_t channels = 16, meetings = 32;

    struct alignas(64) apart : bell {};
    apart all_[1 + channels + meetings];
    std::atomic<std::size_t> meetings_made_{0};
};

}}}  // namespace rill::RILL_ABI::in_process::detail
