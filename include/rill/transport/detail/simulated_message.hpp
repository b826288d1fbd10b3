#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/received_message.hpp>
#include <rill/transport/detail/simulated_post_office.hpp>
#include <rill/transport/detail/simulated_world.hpp>

#include <memory>

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// A received message, in the memory of its sender until it is destroyed.
using message = rill::detail::received_message<detail::world*, detail::parcel>;

/// A borrowed send in progress; it is done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;
    sending(detail::world& world, detail::parcel& posted) : parcel_(&posted, {&world}) {}

    bool done() noexcept {
        if (!is_done()) world().poll();
        return is_done();
    }

    /// True when done, false when `until` has passed; throws the failure that ended the context.
    bool wait(deadline until) { return parcel_ == nullptr || world().wait_until_read(*parcel_, until); }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    void settle() noexcept {
        if (parcel_ == nullptr) return;
        world().settle(*parcel_);
        parcel_.reset();
    }

  private:
    struct forgetter {
        detail::world* of;
        void operator()(detail::parcel* posted) const noexcept { of->let_go(*posted); }
    };

    detail::world& world() const { return *parcel_.get_deleter().of; }
    bool is_done() const { return parcel_ == nullptr || parcel_->at == detail::parcel::stage::done; }

    std::unique_ptr<detail::parcel, forgetter> parcel_;
};

}}}  // namespace rill::RILL_ABI::simulated
