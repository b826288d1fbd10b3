#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process {

/// A thread of one rank. `join()` waits for its end and rethrows its exception. The destructor joins and discards the
/// exception; if it runs during unwinding, the activity's waits throw `peer_failure`, so that it ends.
class activity {
  public:
    activity(activity&&) = default;
    activity& operator=(activity&& other) noexcept {
        activity(std::move(other)).swap(*this);
        return *this;
    }
    ~activity() {
        if (!thread_.joinable()) return;
        if (std::uncaught_exceptions() > unwinding_) {
            state_->stop.test_and_set(std::memory_order_release);
            state_->world.at(state_->rank).bells.ring_all();
        }
        thread_.join();
    }

    void join() {
        if (thread_.joinable()) thread_.join();
        if (state_ != nullptr && state_->thrown) std::rethrow_exception(std::exchange(state_->thrown, nullptr));
    }

  private:
    friend class endpoint;
    struct state {
        detail::world& world;
        rank_t rank;
        std::atomic_flag stop{};
        std::exception_ptr thrown{};
    };

    template <class Body>
    activity(detail::world& world, rank_t rank, Body body) : state_(new state{.world = world, .rank = rank}) {
        thread_ = std::thread([own = state_.get(), body = std::move(body)]() mutable {
            own->world.threads_changed(1);
            detail::stop_requested = &own->stop;
            try {
                body();
            } catch (...) {
                own->thrown = std::current_exception();
            }
            own->world.threads_changed(-1);
        });
    }
    void swap(activity& other) noexcept {
        state_.swap(other.state_);
        thread_.swap(other.thread_);
        std::swap(unwinding_, other.unwinding_);
    }

    std::unique_ptr<state> state_;
    std::thread thread_;
    int unwinding_ = std::uncaught_exceptions();
};

}}}  // namespace rill::RILL_ABI::in_process
