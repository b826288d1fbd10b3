#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_fiber_team.hpp>
#include <rill/transport/detail/mail_turns.hpp>

#include <exception>
#include <memory>
#include <thread>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A thread of one rank where the port allows several, else a fiber, which runs whenever the rank waits or polls.
/// `join()` waits for its end and rethrows its exception. The destructor joins and discards the exception; if it runs
/// during unwinding, the activity's waits throw `peer_failure`, so that it ends.
template <class Port>
class activity {
  public:
    template <class Body>
    activity(engine<Port>& of, Body& body) {
        if (of.is_concurrent())
            start_thread(of, body);
        else
            start_fiber(of, body);
        engine_ = of.shared_from_this();
    }
    activity(activity&& other) noexcept { swap(other); }
    activity& operator=(activity&& other) noexcept {
        activity moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~activity() {
        if (engine_ == nullptr) return;
        if (std::uncaught_exceptions() > unwinding_) {
            state().stop.store(true, std::memory_order_release);
            engine_->rouse();
        }
        finish();
    }

    void join() {
        if (engine_ == nullptr) return;
        if (const std::exception_ptr thrown = finish()) std::rethrow_exception(thrown);
    }

  private:
    struct thread_state {
        activity_state state{};
        std::thread thread{};
    };

    template <class Body>
    void start_thread(engine<Port>& of, Body& body) {
        own_ = std::make_unique<thread_state>();
        own_->thread = std::thread([&of, state = &own_->state, body = std::move(body)]() mutable {
            of.taking_turns().threads_changed(1);
            own_activity = state;
            try {
                body();
            } catch (...) {
                state->thrown = std::current_exception();
            }
            of.taking_turns().threads_changed(-1);
        });
    }

    /// Moves the body to the fiber's own stack before it returns.
    template <class Body>
    void start_fiber(engine<Port>& of, Body& body) {
        const auto run = [](void* given) {
            Body moved(std::move(*static_cast<Body*>(given)));
            moved();
        };
        member_ = &of.fibers().start(run, &body, of.chosen().stack_bytes);
    }

    activity_state& state() { return own_ ? own_->state : member_->state; }

    std::exception_ptr finish() noexcept {
        const std::shared_ptr<mail::engine<Port>> engine = std::exchange(engine_, nullptr);
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

    std::shared_ptr<mail::engine<Port>> engine_;  // null: joined
    std::unique_ptr<thread_state> own_;
    fiber_team::member* member_ = nullptr;
    int unwinding_ = std::uncaught_exceptions();
};

}}}  // namespace rill::RILL_ABI::mail
