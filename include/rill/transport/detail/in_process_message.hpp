#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/in_process_mailbox.hpp>
#include <rill/transport/detail/in_process_world.hpp>
#include <rill/transport/detail/node_handle.hpp>
#include <rill/transport/detail/received_message.hpp>

#include <atomic>

namespace rill { inline namespace RILL_ABI { namespace in_process {

/// A received message, in the memory of its sender until it is destroyed.
using message = rill::detail::received_message<detail::world*, detail::node>;

/// A borrowed send in progress; it is done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;
    sending(detail::world& world, detail::node* posted) : node_(posted, {&world}) {}

    bool done() noexcept { return node_.get() == nullptr || retired_if(node_->marks.load(std::memory_order_acquire)); }

    /// True when done, false when `until` has passed; throws the failure that ended the context.
    bool wait(deadline until) {
        return done() || world().wait(node_->source, node_->on, until, [this] { return released(); });
    }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    [[gnu::noinline]] void settle() noexcept {
        if (done()) return;
        if (world().withdraw(*node_.get())) return retire();
        world().wait_regardless(node_->source, node_->on, [this] { return released(); });
    }

  private:
    /// Withdraws a message that nobody has taken; a message that is being read is retired by its reader.
    struct abandoner {
        detail::world* of = nullptr;
        [[gnu::noinline]] void operator()(detail::node& posted) const noexcept {
            const bool withdrawn = of->withdraw(posted);
            if (withdrawn || (posted.marks.fetch_or(detail::node::abandoned, std::memory_order_acq_rel) &
                              detail::node::released) != 0)
                of->at(posted.receiver).box.retire(posted);
        }
    };

    detail::world& world() const { return *node_.releaser().of; }
    [[gnu::noinline]] void retire() noexcept { world().at(node_->receiver).box.retire(*node_.take()); }
    bool retired_if(unsigned marks) noexcept {
        if ((marks & detail::node::released) == 0) return false;
        retire();
        return true;
    }
    /// Asks to be woken by the release; true when it has already happened.
    bool released() noexcept {
        return retired_if(node_->marks.fetch_or(detail::node::awaited, std::memory_order_acq_rel));
    }

    rill::detail::node_handle<detail::node, abandoner> node_;
};

}}}  // namespace rill::RILL_ABI::in_process
