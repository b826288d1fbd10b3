#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_mailbox.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <atomic>
#include <utility>

namespace rill::inline RILL_ABI::in_process {

/// A received message. Its pieces lie in the sender's memory, or in the buffer that was handed over; destroying it lets
/// the sender go on.
class message {
  public:
    message(message&& other) noexcept : world_(other.world_), node_(std::exchange(other.node_, nullptr)) {}
    message& operator=(message&& other) noexcept {
        message moved(std::move(other));
        std::swap(world_, moved.world_);
        std::swap(node_, moved.node_);
        return *this;
    }
    ~message() {
        if (node_ != nullptr) world_->release(*node_);
    }

    rank_t source() const { return node_->source; }
    byte_pieces pieces() const { return node_->pieces; }

  private:
    friend class endpoint;
    message(detail::world& world, detail::node& taken) : world_(&world), node_(&taken) {}

    detail::world* world_;
    detail::node* node_;
};

/// A borrowed send under way: done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept : world_(other.world_), node_(std::exchange(other.node_, nullptr)) {}
    sending& operator=(sending&& other) noexcept {
        sending moved(std::move(other));
        std::swap(world_, moved.world_);
        std::swap(node_, moved.node_);
        return *this;
    }
    ~sending() {
        if (node_ == nullptr || withdrawn()) return;
        const unsigned before = node_->marks.fetch_or(detail::node::abandoned, std::memory_order_acq_rel);
        if ((before & detail::node::released) != 0) retire();
    }

    bool done() noexcept { return node_ == nullptr || retired_if(node_->marks.load(std::memory_order_acquire)); }

    /// True when done, false when `until` has passed; throws what ended the context.
    bool wait(deadline until) {
        return done() || world_->wait(node_->source, node_->on, until, [this] { return released(); });
    }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    void settle() noexcept {
        if (done() || withdrawn()) return;
        world_->wait_regardless(node_->source, node_->on, [this] { return released(); });
    }

  private:
    friend class endpoint;
    sending(detail::world& world, detail::node* posted) : world_(&world), node_(posted) {}

    void retire() noexcept {
        world_->at(node_->receiver).box.retire(*node_);
        node_ = nullptr;
    }
    bool retired_if(unsigned marks) noexcept {
        if ((marks & detail::node::released) == 0) return false;
        retire();
        return true;
    }
    bool withdrawn() noexcept {
        if (!world_->withdraw(*node_)) return false;
        retire();
        return true;
    }
    /// Asks to be woken by the release, or finds that it has happened.
    bool released() noexcept {
        return retired_if(node_->marks.fetch_or(detail::node::awaited, std::memory_order_acq_rel));
    }

    detail::world* world_ = nullptr;
    detail::node* node_ = nullptr;
};

}  // namespace rill::inline RILL_ABI::in_process
