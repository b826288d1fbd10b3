// Fibers on POSIX contexts: a switch costs two system calls, and no further library is needed.
#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/stack_switch.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

#if __has_include(<ucontext.h>) && __has_include(<sys/mman.h>)
#define RILL_DETAIL_MAIL_FIBERS 1
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#else
#define RILL_DETAIL_MAIL_FIBERS 0
#include <stdexcept>
#endif

namespace rill { inline namespace RILL_ABI { namespace mail {

#if RILL_DETAIL_MAIL_FIBERS

/// A stack of whole pages, the lowest of which is a guard page.
class fiber_stack {
  public:
    explicit fiber_stack(std::size_t bytes) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        size_ = (bytes + page - 1) / page * page + page;
        base_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base_ == MAP_FAILED) throw std::bad_alloc();
        ::mprotect(base_, page, PROT_NONE);
    }
    fiber_stack(const fiber_stack&) = delete;
    fiber_stack& operator=(const fiber_stack&) = delete;
    ~fiber_stack() {
        rill::detail::stack_annotation::forget(base_, size_);
        ::munmap(base_, size_);
    }

    void* base() const { return base_; }
    std::size_t size() const { return size_; }

  private:
    void* base_ = nullptr;
    std::size_t size_ = 0;
};

/// A function with its own stack. The function must return before its fiber is destroyed: nothing unwinds a suspended
/// fiber.
class fiber {
  public:
    fiber(std::size_t stack_bytes, void (*body)(void*), void* argument)
        : stack_(stack_bytes), body_(body), argument_(argument) {
        ::getcontext(&context_);
        context_.uc_stack.ss_sp = stack_.base();
        context_.uc_stack.ss_size = stack_.size();
        context_.uc_link = nullptr;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        ::makecontext(&context_, reinterpret_cast<void (*)()>(&fiber::start), 2, static_cast<unsigned>(self >> 32),
                      static_cast<unsigned>(self));
    }
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    /// Runs it until it suspends or returns.
    RILL_DETAIL_SWITCHES void resume() {
        exceptions_ = rill::detail::exception_state::exchange(exceptions_);
        rill::detail::stack_annotation host;
        host.leave_for(stack_.base(), stack_.size());
        race_.enter();
        ::swapcontext(&host_, &context_);
        host.arrive(nullptr, nullptr);
        exceptions_ = rill::detail::exception_state::exchange(exceptions_);
    }

    /// Called by the fiber's own body; returns control to the caller of `resume`.
    RILL_DETAIL_SWITCHES void suspend() {
        own_.leave_for(host_bottom_, host_size_);
        race_.leave();
        ::swapcontext(&context_, &host_);
        own_.arrive(&host_bottom_, &host_size_);
    }

  private:
    /// Takes the fiber's address in two halves, because makecontext passes int.
    RILL_DETAIL_SWITCHES static void start(unsigned high, unsigned low) noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no other way
        fiber& own = *reinterpret_cast<fiber*>((std::uintptr_t{high} << 32) | low);
        own.own_.arrive(&own.host_bottom_, &own.host_size_);
        own.body_(own.argument_);
        own.own_.leave_for_ever(own.host_bottom_, own.host_size_);
        own.race_.leave();
        ::setcontext(&own.host_);
    }

    fiber_stack stack_;
    void (*body_)(void*);
    void* argument_;
    ucontext_t context_{};
    ucontext_t host_{};
    rill::detail::exception_state exceptions_{};
    rill::detail::stack_annotation own_{};
    rill::detail::race_annotation race_{};
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
};

#else

/// Without Boost.Context there are no fibers.
class fiber {
  public:
    fiber(std::size_t, void (*)(void*), void*) {
        throw std::logic_error(
            "rill: no activities here: the transport allows one thread (over MPI: less than MPI_THREAD_MULTIPLE), and "
            "the system lacks the "
            "contexts (ucontext.h) by which they could share the rank's thread");
    }
    void resume() {}
    void suspend() {}
};

#endif

}}}  // namespace rill::RILL_ABI::mail
