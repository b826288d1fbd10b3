#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mail_fiber_team.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Set while this thread runs an activity.
inline thread_local const activity_state* own_activity = nullptr;

/// A mutex if several threads may call the endpoint, otherwise a no-op.
class optional_mutex {
  public:
    void enable(bool on) { on_ = on; }
    bool is_enabled() const { return on_; }
    void lock() {
        if (on_) mutex_.lock();
    }
    void unlock() {
        if (on_) mutex_.unlock();
    }

  private:
    bool on_ = false;
    std::mutex mutex_;
};

/// What a wait does between two polls: nothing at first, later it gives its core away or sleeps.
///
/// It does not give the core away after each poll. A port looks first and makes progress then, so that a
/// message is found one poll after its arrival, and Open MPI may itself give the core away at the end of a poll.
class turns {
  public:
    /// `neighbours`: the number of ranks that share the cores, including this one. A `nap` of 0: it never sleeps.
    void configure(int spins, duration nap, int neighbours) {
        spins_ = spins;
        nap_ = nap;
        neighbours_ = neighbours;
    }
    /// Counts activities that are threads. Every neighbour is assumed to run as many as this rank.
    void threads_changed(int by) { threads_.fetch_add(by, std::memory_order_relaxed); }

    void pass(std::int64_t looks, bool sleeps) const {
        const std::int64_t spins = is_crowded() ? 0 : spins_;
        if (looks < spins) return;
        const bool naps = sleeps || (own_activity != nullptr && looks > spins + spins_);
        if (naps && nap_.ns > 0)
            std::this_thread::sleep_for(std::chrono::nanoseconds(nap_.ns));
        else if (looks % looks_per_yield == looks_per_yield - 1)
            std::this_thread::yield();
    }

  private:
    static constexpr std::int64_t looks_per_yield = 4;

    bool is_crowded() const { return neighbours_ * (1 + threads_.load(std::memory_order_relaxed)) > cores_; }

    int spins_ = 0;
    duration nap_{};
    int neighbours_ = 1;
    std::atomic<int> threads_{0};
    int cores_ = static_cast<int>(std::thread::hardware_concurrency());
};

}}}  // namespace rill::RILL_ABI::mail
