#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI::in_process {

class endpoint;

/// A flag that activities of one rank wait for. Its waits belong to no context: only an abort of all contexts ends
/// them.
class event {
  public:
    explicit event(endpoint& net);
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    void set() {
        set_.store(true, std::memory_order_release);
        world_->at(rank_).bell.ring();
    }
    void reset() { set_.store(false, std::memory_order_relaxed); }
    /// False when `until` has passed.
    bool wait(deadline until) {
        return world_->wait(rank_, every_context, until, [this] { return set_.load(std::memory_order_acquire); });
    }

  private:
    detail::world* world_;
    rank_t rank_;
    std::atomic<bool> set_{false};
};

/// Passes values between activities of one rank, first in, first out; unbounded. Its waits belong to no context.
template <class T>
class queue {
  public:
    template <class Net>
    explicit queue(Net& net) : world_(net.world_), rank_(net.rank_) {}
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;

    void push(T value) {
        {
            const std::lock_guard lock(mutex_);
            RILL_EXPECTS(!closed_, "in_process: push to a closed queue");
            values_.push_back(std::move(value));
        }
        world_->at(rank_).bell.ring();
    }
    /// Empty when `until` has passed, or when the queue is closed and all its values have been taken.
    std::optional<T> pop(deadline until) {
        std::optional<T> value;
        world_->wait(rank_, every_context, until, [&] {
            const std::lock_guard lock(mutex_);
            if (taken_ == values_.size()) return closed_;
            value.emplace(std::move(values_[taken_++]));
            if (2 * taken_ < values_.size()) return true;
            values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
            taken_ = 0;
            return true;
        });
        return value;
    }
    /// Ends the waits of those who pop, now and later, once the values are taken.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        world_->at(rank_).bell.ring();
    }

  private:
    detail::world* world_;
    rank_t rank_;
    std::mutex mutex_;
    std::vector<T> values_;
    std::size_t taken_ = 0;  ///< leading values that are gone
    bool closed_ = false;
};

}  // namespace rill::inline RILL_ABI::in_process
