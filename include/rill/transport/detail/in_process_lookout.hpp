#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// What one rank watches and has been told of the others. Its rank's mutex guards it.
class lookout {
  public:
    [[gnu::cold, gnu::noinline]] explicit lookout(int ranks)
        : ended_(static_cast<std::size_t>(ranks)), fenced_(static_cast<std::size_t>(ranks)) {}

    const std::vector<channel>& channels() const { return channels_; }
    void watch(channel on) { channels_.push_back(on); }
    void forget(std::uint64_t context) {
        std::erase_if(channels_, [&](channel each) { return each.context == context; });
    }

    /// Nothing is sent to a free seat.
    bool is_free() const { return is_free_; }
    void take_seat() { is_free_ = false; }

    bool is_fenced(rank_t peer) const { return has_fences_ && fenced_[static_cast<std::size_t>(peer)] != 0; }
    void fence(rank_t peer) {
        has_fences_ = true;
        fenced_[static_cast<std::size_t>(peer)] = 1;
    }

    /// True the first time that it is said.
    bool ends(rank_t peer) { return std::exchange(ended_[static_cast<std::size_t>(peer)], char{1}) == 0; }
    bool has_ended(rank_t peer) const { return ended_[static_cast<std::size_t>(peer)] != 0; }

    /// Whether a receive waits for peers of which nothing will come: see `MonitoredTransport`.
    bool waits_in_vain(std::span<const rank_t> peers, channel on) const {
        return !channels_.empty() && !peers.empty() && is_answered_elsewhere(on) && are_gone(peers);
    }

  private:
    /// Whether the end of a peer is told on another channel of the same context.
    bool is_answered_elsewhere(channel on) const {
        bool is_open = false;
        for (const channel each : channels_) {
            if (each == on) return false;
            is_open = is_open || each.context == on.context;
        }
        return is_open;
    }
    bool are_gone(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers)
            if (!is_fenced(peer) && !has_ended(peer)) return false;
        return true;
    }

    bool is_free_ = true;
    bool has_fences_ = false;
    std::vector<channel> channels_;
    std::vector<char> ended_, fenced_;  ///< by rank
};

}}}  // namespace rill::RILL_ABI::in_process::detail
