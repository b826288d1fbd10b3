#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/transport/detail/in_process_bell.hpp>

#include <array>
#include <atomic>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// The bells of one rank. Activities that wait for different things wait at different bells, so that what one of them
/// has been waiting for does not wake the others: with a few of them asleep that would cost more than the message.
///
/// They stay as long as the rank: whoever rings may do so when those who waited have gone.
class bells {
  public:
    /// For messages of a channel and the release of what was lent on it. Neighbouring tags have different ones.
    bell& of(channel on) { return all_[1 + (on.context + on.tag) % channels]; }
    /// For everything else.
    bell& common() { return all_[0]; }
    /// For an event or a queue: another one for each, as far as they go.
    bell& of_meeting() {
        return all_[1 + channels + meetings_made_.fetch_add(1, std::memory_order_relaxed) % meetings];
    }

    void ring_all() noexcept {
        for (bell& each : all_) each.ring();
    }

  private:
    static constexpr std::size_t channels = 16, meetings = 32;

    struct alignas(64) apart : bell {};
    std::array<apart, 1 + channels + meetings> all_;
    std::atomic<std::size_t> meetings_made_{0};
};

}}}  // namespace rill::RILL_ABI::in_process::detail
