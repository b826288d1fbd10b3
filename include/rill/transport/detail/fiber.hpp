// Fibers on Boost.Context.
#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/stack_switch.hpp>

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A function with its own stack, behind a guard page. The function must return before its fiber is destroyed: nothing
/// unwinds a suspended fiber.
///
/// It uses only Boost.Context's switch, not `boost::context::fiber`: that class unwinds by an exception which no
/// `catch (...)` may swallow, and sanitizers would instrument its wrappers.
class fiber {
  public:
    fiber(std::size_t stack_bytes, void (*body)(void*), void* argument)
        : stacks_(stack_bytes),
          stack_(stacks_.allocate()),
          body_(body),
          argument_(argument),
          context_(boost::context::detail::make_fcontext(stack_.sp, stack_.size, &fiber::start)) {}
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

    /// Called by the fiber's own body; returns control to the caller of `resume`.
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
    boost::context::detail::fcontext_t context_;
    boost::context::detail::fcontext_t host_ = nullptr;
    exception_state exceptions_{};
    stack_annotation own_{};
    race_annotation race_{};
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
