// State that every switch of fibers must save and restore: the exceptions being handled, and the sanitizers' view of
// the stack.
#pragma once

#include <rill/core/config.hpp>

#include <cxxabi.h>
#include <cstddef>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define RILL_DETAIL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RILL_DETAIL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RILL_DETAIL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RILL_DETAIL_TSAN 1
#endif
#endif
#ifdef RILL_DETAIL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef RILL_DETAIL_TSAN
#include <sanitizer/tsan_interface.h>
#ifdef __clang__
#define RILL_DETAIL_SWITCHES __attribute__((disable_sanitizer_instrumentation))  // its no_sanitize keeps calls recorded
#else
#define RILL_DETAIL_SWITCHES __attribute__((no_sanitize("thread")))
#endif
#else
#define RILL_DETAIL_SWITCHES
#endif

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The exceptions that a thread is handling and throwing (Itanium C++ ABI 2.2.2). A fiber may be suspended inside a
/// catch block, so each fiber has its own.
struct exception_state {
    void* caught = nullptr;
    unsigned int uncaught = 0;

    static exception_state exchange(exception_state mine) noexcept {
        auto* const of_thread = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
        return std::exchange(*of_thread, mine);
    }
};

/// Tells the address sanitizer which stack is in use. With each stack the sanitizer has a second one, in which it keeps
/// frames that have been left: of up to eleven megabytes, or less by its option `max_uar_stack_size_log`. It lasts
/// until `release`, and serves all fibers that run on the stack.
class stack_annotation {
  public:
#ifdef RILL_DETAIL_ASAN
    void leave_for(const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(&second_, bottom, size); }
    void arrive(const void** bottom, std::size_t* size) { __sanitizer_finish_switch_fiber(second_, bottom, size); }
    /// Removes the marks of frames that never returned, so that the next user of the memory gets no false report.
    static void forget(const void* bottom, std::size_t size) { __asan_unpoison_memory_region(bottom, size); }
    /// Frees the second stack. The sanitizer does that where a fiber leaves its stack for ever, so this pretends to
    /// arrive on the stack and to leave it. The fiber must have ended.
    __attribute__((no_sanitize("address"))) void release() {
        stack_annotation host;
        const void* host_bottom = nullptr;
        std::size_t host_size = 0;
        host.leave_for(nullptr, 0);
        arrive(&host_bottom, &host_size);
        __sanitizer_start_switch_fiber(nullptr, host_bottom, host_size);
        host.arrive(nullptr, nullptr);
        second_ = nullptr;
    }

  private:
    void* second_ = nullptr;
#else
    void leave_for(const void*, std::size_t) {}
    void arrive(const void**, std::size_t*) {}
    static void forget(const void*, std::size_t) {}
    void release() {}
#endif
};

/// Tells the thread sanitizer which fiber runs. The sanitizer records a call stack for each fiber. A function that
/// switches must not be instrumented, or it would enter one recorded stack and leave another.
class race_annotation {
  public:
    race_annotation() = default;
    race_annotation(const race_annotation&) = delete;
    race_annotation& operator=(const race_annotation&) = delete;
#ifdef RILL_DETAIL_TSAN
    ~race_annotation() { __tsan_destroy_fiber(fiber_); }
    RILL_DETAIL_SWITCHES void enter() {
        host_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(fiber_, 0);
    }
    RILL_DETAIL_SWITCHES void leave() { __tsan_switch_to_fiber(host_, 0); }

  private:
    void* fiber_ = __tsan_create_fiber(0);
    void* host_ = nullptr;
#else
    void enter() {}
    void leave() {}
#endif
};

/// A function with its own stack, behind a guard page. The function must return before its fiber is destroyed: nothing
/// unwinds a suspended fiber. `Context`: has that stack and its annotation, calls a function on it that never returns
/// when it is first entered, and switches to it (`enter`) and back (`leave`).
template <class Context>
class fiber_on {
  public:
    fiber_on(std::size_t stack_bytes, void (*body)(void*), void* argument)
        : context_(stack_bytes, &fiber_on::run, this), body_(body), argument_(argument) {}
    fiber_on(const fiber_on&) = delete;
    fiber_on& operator=(const fiber_on&) = delete;
    ~fiber_on() { stack_annotation::forget(context_.bottom(), context_.size()); }

    /// Runs it until it suspends or returns.
    RILL_DETAIL_SWITCHES void resume() {
        exceptions_ = exception_state::exchange(exceptions_);
        stack_annotation host;
        host.leave_for(context_.bottom(), context_.size());
        race_.enter();
        context_.enter();
        host.arrive(nullptr, nullptr);
        exceptions_ = exception_state::exchange(exceptions_);
    }

    /// Called by the fiber's own body; returns control to the caller of `resume`.
    RILL_DETAIL_SWITCHES void suspend() {
        leave();
        context_.annotation().arrive(&host_bottom_, &host_size_);
    }

  private:
    RILL_DETAIL_SWITCHES static void run(void* self) noexcept {
        fiber_on& fiber = *static_cast<fiber_on*>(self);
        fiber.context_.annotation().arrive(&fiber.host_bottom_, &fiber.host_size_);
        fiber.body_(fiber.argument_);
        fiber.leave();
    }
    RILL_DETAIL_SWITCHES void leave() {
        context_.annotation().leave_for(host_bottom_, host_size_);
        race_.leave();
        context_.leave();
    }

    Context context_;
    void (*body_)(void*);
    void* argument_;
    exception_state exceptions_{};
    race_annotation race_{};
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
