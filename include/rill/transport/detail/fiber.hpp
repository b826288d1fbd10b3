// Fibers on Boost.Context.
#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/stack_switch.hpp>

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

#include <cstddef>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

struct fiber_stack {
    boost::context::stack_context memory{};
    stack_annotation annotation{};
};

/// A thread's cache of stacks: those of fibers that have ended serve the next fibers that ask for as many bytes. A
/// fresh stack costs three system calls, and a fault for each page that is touched. A shelf keeps at most `most`
/// stacks of at most `most_bytes` together, all of one size, until its thread ends.
class stack_shelf {
  public:
#ifdef RILL_DETAIL_ASAN
    static constexpr std::size_t most = 32;  // each has some megabytes of the sanitizer's
#else
    static constexpr std::size_t most = 256;
#endif
    static constexpr std::size_t most_bytes = std::size_t{1} << 27;

    static fiber_stack take(std::size_t bytes) {
        stack_shelf* const own = of_this_thread();
        if (own == nullptr || own->bytes_ != bytes || own->kept_.empty())
            return {.memory = boost::context::protected_fixedsize_stack(bytes).allocate()};
        const fiber_stack kept = own->kept_.back();
        own->kept_.pop_back();
        return kept;
    }
    /// `bytes` must be those with which `stack` was taken.
    static void give_back(fiber_stack& stack, std::size_t bytes) noexcept {
        stack_shelf* const own = of_this_thread();
        if (own != nullptr && own->bytes_ != bytes) own->keep_only(bytes);
        if (own != nullptr && own->has_place())
            own->kept_.push_back(stack);
        else
            unmap(stack);
    }

    stack_shelf() { kept_.reserve(most); }
    stack_shelf(const stack_shelf&) = delete;
    stack_shelf& operator=(const stack_shelf&) = delete;
    ~stack_shelf() {
        is_gone = true;
        keep_only(0);
    }

  private:
    /// Null while a thread exits after its shelf has been destroyed.
    static stack_shelf* of_this_thread() {
        if (is_gone) return nullptr;
        thread_local stack_shelf own;
        return &own;
    }
    static void unmap(fiber_stack& stack) {
        stack.annotation.release();
        boost::context::protected_fixedsize_stack(stack.memory.size).deallocate(stack.memory);
    }
    bool has_place() const { return kept_.size() < most && (kept_.size() + 1) * bytes_ <= most_bytes; }
    void keep_only(std::size_t bytes) {
        for (fiber_stack& each : kept_) unmap(each);
        kept_.clear();
        bytes_ = bytes;
    }

    static inline thread_local bool is_gone = false;

    std::vector<fiber_stack> kept_;
    std::size_t bytes_ = 0;  ///< what was asked for of each
};

/// A stack behind a guard page, and Boost.Context's switch. It does not use `boost::context::fiber`: that class unwinds
/// by an exception which no `catch (...)` may swallow, and sanitizers would instrument its wrappers.
class boost_context {
  public:
    boost_context(std::size_t stack_bytes, void (*run)(void*), void* argument)
        : stack_bytes_(stack_bytes),
          stack_(stack_shelf::take(stack_bytes)),
          run_(run),
          argument_(argument),
          context_(boost::context::detail::make_fcontext(stack_.memory.sp, stack_.memory.size, &boost_context::start)) {
    }
    boost_context(const boost_context&) = delete;
    boost_context& operator=(const boost_context&) = delete;
    ~boost_context() { stack_shelf::give_back(stack_, stack_bytes_); }

    const void* bottom() const { return static_cast<const char*>(stack_.memory.sp) - stack_.memory.size; }
    std::size_t size() const { return stack_.memory.size; }
    stack_annotation& annotation() { return stack_.annotation; }

    RILL_DETAIL_SWITCHES void enter() { context_ = boost::context::detail::jump_fcontext(context_, this).fctx; }
    RILL_DETAIL_SWITCHES void leave() { host_ = boost::context::detail::jump_fcontext(host_, nullptr).fctx; }

  private:
    RILL_DETAIL_SWITCHES static void start(boost::context::detail::transfer_t from) noexcept {
        boost_context& own = *static_cast<boost_context*>(from.data);
        own.host_ = from.fctx;
        own.run_(own.argument_);
    }

    std::size_t stack_bytes_;
    fiber_stack stack_;
    void (*run_)(void*);
    void* argument_;
    boost::context::detail::fcontext_t context_;
    boost::context::detail::fcontext_t host_ = nullptr;
};

using fiber = fiber_on<boost_context>;

}}}  // namespace rill::RILL_ABI::detail
