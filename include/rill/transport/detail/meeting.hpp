// Events and queues between activities of one rank, for transports whose activities are threads or fibers of one
// thread.
#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A flag that activities of one rank wait for. Its waits belong to no context: only an abort of all contexts ends
/// them. What is there already is given also after that. `Place` is constructed from the endpoint; its
/// `wait(until, ready)` tests `ready` again after each `ring()`.
template <class Place>
class meeting_flag {
  public:
    explicit meeting_flag(Place place) : place_(place) {}
    meeting_flag(const meeting_flag&) = delete;
    meeting_flag& operator=(const meeting_flag&) = delete;

    void set() {
        set_.store(true, std::memory_order_release);
        place_.ring();
    }
    void reset() { set_.store(false, std::memory_order_relaxed); }
    /// False when `until` has passed.
    bool wait(deadline until) {
        const auto is_set = [this] { return set_.load(std::memory_order_acquire); };
        return is_set() || place_.wait(until, is_set);
    }

  private:
    Place place_;
    std::atomic<bool> set_{false};
};

/// Passes values between activities of one rank, first in, first out; unbounded. Its waits belong to no context: see
/// `meeting_flag`.
template <class T, class Place>
class meeting_queue {
  public:
    explicit meeting_queue(Place place) : place_(place) {}
    meeting_queue(const meeting_queue&) = delete;
    meeting_queue& operator=(const meeting_queue&) = delete;

    void push(T value) {
        {
            const std::lock_guard lock(mutex_);
            RILL_EXPECTS(!closed_, "queue: push to a closed queue");
            values_.push_back(std::move(value));
        }
        place_.ring();
    }
    /// Empty when `until` has passed, or when the queue is closed and all its values have been taken.
    std::optional<T> pop(deadline until) {
        std::optional<T> value;
        const auto is_answered = [&] { return take(value); };
        if (!is_answered()) place_.wait(until, is_answered);
        return value;
    }
    /// Ends all present and future waits in `pop` once the values have been taken.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        place_.ring();
    }

  private:
    /// Takes the oldest value. False if there is none yet.
    bool take(std::optional<T>& value) {
        const std::lock_guard lock(mutex_);
        if (taken_ == values_.size()) return closed_;
        value.emplace(std::move(values_[taken_++]));
        if (2 * taken_ < values_.size()) return true;
        values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
        taken_ = 0;
        return true;
    }

    Place place_;
    std::mutex mutex_;
    std::vector<T> values_;
    std::size_t taken_ = 0;  ///< leading values that have been taken
    bool closed_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
