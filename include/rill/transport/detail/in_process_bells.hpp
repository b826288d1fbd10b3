#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/transport/detail/in_process_bell.hpp>

#include <atomic>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// The bells of one rank. Activities that wait for different events wait at different bells, so that an event wakes
/// only those who wait for it: to wake a few others would cost more than the message.
///
/// Bells live as long as the rank, because a bell may be rung after its waiters have gone.
class bells {
  public:
    /// For messages of a channel and the release of borrowed messages on it. Neighbouring tags have different bells.
    bell& of(channel on) { return all_[1 + (on.context + on.tag) % channels]; }
    /// For everything else.
    bell& common() { return all_[0]; }
    /// For an event or a queue; assigned in turn, so that several share a bell only when there are more than
    /// `meetings`.
    bell& of_meeting() {
        return all_[1 + channels + meetings_made_.fetch_add(1, std::memory_order_relaxed) % meetings];
    }

    void ring_all() noexcept {
        for (bell& each : all_) each.ring();
    }

  private:
    static constexpr std::size_t channels = 16, meetings = 32;

    struct alignas(64) apart : bell {};
    apart all_[1 + channels + meetings];
    std::atomic<std::size_t> meetings_made_{0};
};

}}}  // namespace rill::RILL_ABI::in_process::detail
