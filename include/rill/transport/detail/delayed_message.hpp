#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/delayed_inbox.hpp>
#include <rill/transport/detail/delayed_stamp.hpp>

#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A message that is due.
template <class Message>
class delayed_message {
  public:
    rank_t source() const { return received_.inner.source(); }
    byte_pieces pieces() const { return received_.pieces; }

    explicit delayed_message(early_message<Message>&& due) : received_(std::move(due)) {}

  private:
    early_message<Message> received_;
};

/// A borrowed send under way, with the stamp behind it.
template <class Outer, Transport Net>
class delayed_sending {
  public:
    delayed_sending() = default;
    delayed_sending(delayed_sending&& other) noexcept
        : net_(other.net_),
          context_(other.context_),
          stamp_(std::exchange(other.stamp_, nullptr)),
          inner_(std::move(other.inner_)) {}
    delayed_sending& operator=(delayed_sending&& other) noexcept {
        delayed_sending moved(std::move(other));
        std::swap(net_, moved.net_);
        std::swap(context_, moved.context_);
        std::swap(stamp_, moved.stamp_);
        std::swap(inner_, moved.inner_);
        return *this;
    }
    // No destructor gives the stamp back: the receiver of an abandoned send may still read it.

    bool done() { return concluded(inner_.done()); }
    bool wait(deadline until) { return concluded(inner_.wait(until)); }
    void settle() noexcept {
        if (stamp_ == nullptr) return;
        // All ranks may be settling at once, each holding a message whose release another one waits for.
        net_->drop_if_ended(context_);
        inner_.settle();
        concluded(true);
    }

  private:
    friend Outer;
    delayed_sending(Outer& net, std::uint64_t context, stamp* stamp) : net_(&net), context_(context), stamp_(stamp) {}

    bool concluded(bool is_done) noexcept {
        if (is_done && stamp_ != nullptr) net_->stamps_.give_back(std::exchange(stamp_, nullptr));
        return is_done;
    }

    Outer* net_ = nullptr;
    std::uint64_t context_ = 0;
    stamp* stamp_ = nullptr;
    typename Net::sending inner_;
};

}}}  // namespace rill::RILL_ABI::detail
