#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mail_fiber_team.hpp>

#include <algorithm>
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
        worth_ = spins_ = spins;
        nap_ = nap;
        neighbours_ = neighbours;
    }
    /// Counts activities that are threads. Every neighbour is assumed to run as many as this rank.
    void threads_changed(int by) { threads_.fetch_add(by, std::memory_order_relaxed); }

    /// Whether a wait that can sleep in the port has polled long enough. Where polls find nothing, because what they
    /// wait for takes long or needs this core, the next waits poll half as often; where they do, twice as often.
    bool are_over(std::int64_t looks) {
        if (looks < std::min<std::int64_t>(worth_, spins())) return false;
        if (looks <= worth_) worth_ /= 2;
        return true;
    }
    /// A wait has ended after so many polls.
    void end_after(std::int64_t looks) {
        constexpr std::int64_t trial = 16;
        constexpr unsigned waits_per_trial = 64;
        if (looks > 0 && looks <= worth_) worth_ = std::min<std::int64_t>(2 * worth_, spins_);
        if (++waits_ % waits_per_trial == 0)
            worth_ = std::max<std::int64_t>(worth_, std::min<std::int64_t>(trial, spins_));
    }

    void pass(std::int64_t looks, bool sleeps) const {
        const std::int64_t spins = this->spins();
        if (looks < spins) return;
        const bool naps = sleeps || (own_activity != nullptr && looks > spins + spins_);
        if (naps && nap_.ns > 0)
            std::this_thread::sleep_for(std::chrono::nanoseconds(nap_.ns));
        else if (looks % looks_per_yield == looks_per_yield - 1)
            std::this_thread::yield();
    }

  private:
    static constexpr std::int64_t looks_per_yield = 4;

    std::int64_t spins() const { return is_crowded() ? 0 : spins_; }
    bool is_crowded() const { return neighbours_ * (1 + threads_.load(std::memory_order_relaxed)) > cores_; }

    int spins_ = 0;
    std::int64_t worth_ = 0;  ///< polls that seem worth while
    unsigned waits_ = 0;
    duration nap_{};
    int neighbours_ = 1;
    std::atomic<int> threads_{0};
    int cores_ = static_cast<int>(std::thread::hardware_concurrency());
};

}}}  // namespace rill::RILL_ABI::mail
