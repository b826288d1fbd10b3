#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mpi_engine.hpp>
#include <rill/transport/detail/mpi_fiber_team.hpp>
#include <rill/transport/detail/mpi_turns.hpp>

#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// A thread of one rank where MPI allows several, else a fiber, which runs whenever the rank waits or polls. `join()`
/// waits for its end and rethrows its exception. The destructor joins and discards the exception; if it runs during
/// unwinding, the activity's waits throw `peer_failure`, so that it ends.
class activity {
  public:
    activity(activity&& other) noexcept { swap(other); }
    activity& operator=(activity&& other) noexcept {
        activity moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~activity() {
        if (engine_ == nullptr) return;
        if (std::uncaught_exceptions() > unwinding_) state().stop.store(true, std::memory_order_release);
        finish();
    }

    void join() {
        if (engine_ == nullptr) return;
        if (const std::exception_ptr thrown = finish()) std::rethrow_exception(thrown);
    }

  private:
    friend class endpoint;
    struct thread_state {
        detail::activity_state state{};
        std::thread thread{};
    };

    template <class Body>
    activity(detail::engine& engine, Body& body) {
        if (engine.is_concurrent())
            start_thread(engine, body);
        else
            start_fiber(engine, body);
        engine_ = engine.shared_from_this();
    }

    template <class Body>
    void start_thread(detail::engine& engine, Body& body) {
        own_ = std::make_unique<thread_state>();
        own_->thread = std::thread([&engine, state = &own_->state, body = std::move(body)]() mutable {
            engine.taking_turns().threads_changed(1);
            detail::own_activity = state;
            try {
                body();
            } catch (...) {
                state->thrown = std::current_exception();
            }
            engine.taking_turns().threads_changed(-1);
        });
    }

    /// Moves the body to the fiber's own stack before it returns.
    template <class Body>
    void start_fiber(detail::engine& engine, Body& body) {
        const auto run = [](void* given) {
            Body moved(std::move(*static_cast<Body*>(given)));
            moved();
        };
        member_ = &engine.fibers().start(run, &body, engine.chosen().stack_bytes);
    }

    detail::activity_state& state() { return own_ ? own_->state : member_->state; }

    std::exception_ptr finish() noexcept {
        const std::shared_ptr<detail::engine> engine = std::exchange(engine_, nullptr);
        if (own_) {
            own_->thread.join();
            return std::exchange(own_->state.thrown, nullptr);
        }
        engine->see_off(*member_);
        std::exception_ptr thrown = std::exchange(member_->state.thrown, nullptr);
        engine->fibers().dismiss(*std::exchange(member_, nullptr));
        return thrown;
    }

    void swap(activity& other) noexcept {
        std::swap(engine_, other.engine_);
        std::swap(own_, other.own_);
        std::swap(member_, other.member_);
        std::swap(unwinding_, other.unwinding_);
    }

    std::shared_ptr<detail::engine> engine_;  // null: joined
    std::unique_ptr<thread_state> own_;
    detail::fiber_team::member* member_ = nullptr;
    int unwinding_ = std::uncaught_exceptions();
};

}}}  // namespace rill::RILL_ABI::mpi
