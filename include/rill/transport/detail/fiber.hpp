// Fibers on Boost.Context.
#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/stack_switch.hpp>

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A stack behind a guard page, and Boost.Context's switch. It does not use `boost::context::fiber`: that class unwinds
/// by an exception which no `catch (...)` may swallow, and sanitizers would instrument its wrappers.
class boost_context {
  public:
    boost_context(std::size_t stack_bytes, void (*run)(void*), void* argument)
        : stacks_(stack_bytes),
          stack_(stacks_.allocate()),
          run_(run),
          argument_(argument),
          context_(boost::context::detail::make_fcontext(stack_.sp, stack_.size, &boost_context::start)) {}
    boost_context(const boost_context&) = delete;
    boost_context& operator=(const boost_context&) = delete;
    ~boost_context() { stacks_.deallocate(stack_); }

    const void* bottom() const { return static_cast<const char*>(stack_.sp) - stack_.size; }
    std::size_t size() const { return stack_.size; }

    RILL_DETAIL_SWITCHES void enter() { context_ = boost::context::detail::jump_fcontext(context_, this).fctx; }
    RILL_DETAIL_SWITCHES void leave() { host_ = boost::context::detail::jump_fcontext(host_, nullptr).fctx; }

  private:
    RILL_DETAIL_SWITCHES static void start(boost::context::detail::transfer_t from) noexcept {
        boost_context& own = *static_cast<boost_context*>(from.data);
        own.host_ = from.fctx;
        own.run_(own.argument_);
    }

    boost::context::protected_fixedsize_stack stacks_;
    boost::context::stack_context stack_;
    void (*run_)(void*);
    void* argument_;
    boost::context::detail::fcontext_t context_;
    boost::context::detail::fcontext_t host_ = nullptr;
};

using fiber = fiber_on<boost_context>;

}}}  // namespace rill::RILL_ABI::detail
