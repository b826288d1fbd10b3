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

/// A stack of whole pages, the lowest of which is a guard page, and the switch of POSIX contexts.
class posix_context {
  public:
    posix_context(std::size_t stack_bytes, void (*run)(void*), void* argument) : run_(run), argument_(argument) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        size_ = (stack_bytes + page - 1) / page * page + page;
        bottom_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bottom_ == MAP_FAILED) throw std::bad_alloc();
        ::mprotect(bottom_, page, PROT_NONE);
        ::getcontext(&context_);
        context_.uc_stack.ss_sp = bottom_;
        context_.uc_stack.ss_size = size_;
        context_.uc_link = nullptr;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        ::makecontext(&context_, reinterpret_cast<void (*)()>(&posix_context::start), 2,
                      static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
    }
    posix_context(const posix_context&) = delete;
    posix_context& operator=(const posix_context&) = delete;
    ~posix_context() {
        annotation_.release();
        ::munmap(bottom_, size_);
    }

    const void* bottom() const { return bottom_; }
    std::size_t size() const { return size_; }
    rill::detail::stack_annotation& annotation() { return annotation_; }

    RILL_DETAIL_SWITCHES void enter() { ::swapcontext(&host_, &context_); }
    RILL_DETAIL_SWITCHES void leave() { ::swapcontext(&context_, &host_); }

  private:
    /// Takes the address of the context in two halves, because makecontext passes int.
    RILL_DETAIL_SWITCHES static void start(unsigned high, unsigned low) noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no other way
        posix_context& own = *reinterpret_cast<posix_context*>((std::uintptr_t{high} << 32) | low);
        own.run_(own.argument_);
    }

    void (*run_)(void*);
    void* argument_;
    void* bottom_ = nullptr;
    std::size_t size_ = 0;
    rill::detail::stack_annotation annotation_{};
    ucontext_t context_{};
    ucontext_t host_{};
};

using fiber = rill::detail::fiber_on<posix_context>;

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
