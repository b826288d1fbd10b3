// Fibers on Boost.Context that keep what a switch must keep: the state of exceptions being handled, and the sanitizers'
// idea of the stack.
#pragma once

#include <rill/core/config.hpp>

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

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
#define RILL_DETAIL_SWITCHES __attribute__((no_sanitize("thread")))
#else
#define RILL_DETAIL_SWITCHES
#endif

namespace rill::inline RILL_ABI::detail {

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

/// Tells the address sanitizer which stack is in use.
class stack_annotation {
  public:
#ifdef RILL_DETAIL_ASAN
    void leave_for(const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(&fake_, bottom, size); }
    void leave_for_ever(const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(nullptr, bottom, size); }
    void arrive(const void** bottom, std::size_t* size) { __sanitizer_finish_switch_fiber(fake_, bottom, size); }
    /// Frames that never returned have left their marks: whoever gets the memory next must not trip over them.
    static void forget(const void* bottom, std::size_t size) { __asan_unpoison_memory_region(bottom, size); }

  private:
    void* fake_ = nullptr;
#else
    void leave_for(const void*, std::size_t) {}
    void leave_for_ever(const void*, std::size_t) {}
    void arrive(const void**, std::size_t*) {}
    static void forget(const void*, std::size_t) {}
#endif
};

/// Tells the thread sanitizer which fiber runs. It keeps a call stack of its own for each: no function that switches
/// may be instrumented, or it would enter one and leave the other.
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

/// A function with a stack of its own, behind a guard page. It must have returned before its fiber is destroyed:
/// nothing unwinds a suspended one.
///
/// On Boost.Context's switch alone, below `boost::context::fiber`: that one unwinds by an exception which no
/// `catch (...)` may swallow, and its wrappers would be instrumented.
class fiber {
  public:
    fiber(std::size_t stack_bytes, void (*body)(void*), void* argument)
        : stacks_(stack_bytes), stack_(stacks_.allocate()), body_(body), argument_(argument) {
        context_ = boost::context::detail::make_fcontext(stack_.sp, stack_.size, &fiber::start);
    }
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;
    ~fiber() {
        stack_annotation::forget(bottom(), stack_.size);
        stacks_.deallocate(stack_);
    }

    /// Runs it until it suspends or returns.
    RILL_DETAIL_SWITCHES void resume() {
        exceptions_ = exception_state::exchange(exceptions_);
        stack_annotation host;
        host.leave_for(bottom(), stack_.size);
        race_.enter();
        context_ = boost::context::detail::jump_fcontext(context_, this).fctx;
        host.arrive(nullptr, nullptr);
        exceptions_ = exception_state::exchange(exceptions_);
    }

    /// Called by its own body: back to who resumed it.
    RILL_DETAIL_SWITCHES void suspend() {
        own_.leave_for(host_bottom_, host_size_);
        race_.leave();
        host_ = boost::context::detail::jump_fcontext(host_, nullptr).fctx;
        own_.arrive(&host_bottom_, &host_size_);
    }

  private:
    const void* bottom() const { return static_cast<const char*>(stack_.sp) - stack_.size; }

    RILL_DETAIL_SWITCHES static void start(boost::context::detail::transfer_t from) noexcept {
        fiber& own = *static_cast<fiber*>(from.data);
        own.host_ = from.fctx;
        own.own_.arrive(&own.host_bottom_, &own.host_size_);
        own.body_(own.argument_);
        own.own_.leave_for_ever(own.host_bottom_, own.host_size_);
        own.race_.leave();
        boost::context::detail::jump_fcontext(own.host_, nullptr);
    }

    boost::context::protected_fixedsize_stack stacks_;
    boost::context::stack_context stack_;
    void (*body_)(void*);
    void* argument_;
    boost::context::detail::fcontext_t context_ = nullptr;
    boost::context::detail::fcontext_t host_ = nullptr;
    exception_state exceptions_{};
    stack_annotation own_{};
    race_annotation race_{};
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
};

}  // namespace rill::inline RILL_ABI::detail
