#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_world.hpp>

#include <utility>

namespace rill::inline RILL_ABI::simulated {

/// A received message. Its pieces lie in the sender's memory, or in the buffer that was handed over; destroying it lets
/// the sender go on.
class message {
  public:
    message(message&& other) noexcept : world_(other.world_), parcel_(std::exchange(other.parcel_, nullptr)) {}
    message& operator=(message&& other) noexcept {
        std::swap(world_, other.world_);
        std::swap(parcel_, other.parcel_);
        return *this;
    }
    ~message() {
        if (parcel_ != nullptr) world_->release(*parcel_);
    }

    rank_t source() const { return parcel_->source; }
    byte_pieces pieces() const { return parcel_->pieces; }

  private:
    friend class endpoint;
    message(detail::world& world, detail::parcel& taken) : world_(&world), parcel_(&taken) {}

    detail::world* world_;
    detail::parcel* parcel_;
};

/// A borrowed send under way: done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept : world_(other.world_), parcel_(std::exchange(other.parcel_, nullptr)) {}
    sending& operator=(sending&& other) noexcept {
        std::swap(world_, other.world_);
        std::swap(parcel_, other.parcel_);
        return *this;
    }
    ~sending() { forget(); }

    bool done() noexcept {
        if (!is_done()) world_->poll();
        return is_done();
    }

    /// True when done, false when `until` has passed; throws what ended the context.
    bool wait(deadline until) { return parcel_ == nullptr || world_->wait_until_read(*parcel_, until); }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    void settle() noexcept {
        if (parcel_ == nullptr) return;
        world_->settle(*parcel_);
        forget();
    }

  private:
    friend class endpoint;
    sending(detail::world& world, detail::parcel& posted) : world_(&world), parcel_(&posted) {}

    bool is_done() const { return parcel_ == nullptr || parcel_->at == detail::parcel::stage::done; }
    void forget() noexcept {
        if (parcel_ != nullptr) world_->let_go(*std::exchange(parcel_, nullptr));
    }

    detail::world* world_ = nullptr;
    detail::parcel* parcel_ = nullptr;
};

}  // namespace rill::inline RILL_ABI::simulated
