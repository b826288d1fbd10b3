#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/detail/simulated_world.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated {

class endpoint;

/// A flag that activities of one rank wait for. Its waits belong to no context: only an abort of all contexts ends
/// them. What is there already is given also after that.
class event {
  public:
    explicit event(endpoint& net);
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    void set() {
        set_ = true;
        world_->activities().call_all(waiting_);
    }
    void reset() { set_ = false; }
    /// False when `until` has passed.
    bool wait(deadline until) {
        if (set_) return true;
        world_->throw_if_ended({every_context});
        if (world_->passed(until)) return world_->poll(), set_;
        return world_->wait(waiting_, {.kind = detail::waits_for::event}, until);
    }

  private:
    detail::world* world_;
    detail::wait_list waiting_;
    bool set_ = false;
};

/// Passes values between activities of one rank, first in, first out; unbounded. Its waits belong to no context: see
/// `event`.
template <class T>
class queue {
  public:
    template <class Net>
    explicit queue(Net& net) : world_(net.world_) {}
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;

    void push(T value) {
        RILL_EXPECTS(!closed_, "simulated: push to a closed queue");
        values_.push_back(std::move(value));
        if (detail::strand* first = waiting_.first()) world_->activities().call(*first);
    }
    /// Empty when `until` has passed, or when the queue is closed and all its values have been taken.
    std::optional<T> pop(deadline until) {
        while (taken_ == values_.size()) {
            if (closed_) return std::nullopt;
            world_->throw_if_ended({every_context});
            if (world_->passed(until)) return world_->poll(), std::nullopt;
            if (!world_->wait(waiting_, {.kind = detail::waits_for::queue}, until)) return std::nullopt;
        }
        std::optional<T> value(std::move(values_[taken_++]));
        if (2 * taken_ >= values_.size()) {
            values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
            taken_ = 0;
        }
        return value;
    }
    /// Ends all present and future waits in `pop` once the values have been taken.
    void close() {
        closed_ = true;
        world_->activities().call_all(waiting_);
    }

  private:
    detail::world* world_;
    detail::wait_list waiting_;
    std::vector<T> values_;
    std::size_t taken_ = 0;  ///< leading values that have been taken
    bool closed_ = false;
};

}}}  // namespace rill::RILL_ABI::simulated
