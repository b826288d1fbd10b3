#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What one rank watches and has been told of the others, for a `MonitoredTransport`. Its owner guards it.
class lookout {
  public:
    [[gnu::cold, gnu::noinline]] explicit lookout(int ranks)
        : ended_(static_cast<std::size_t>(ranks)), fenced_(static_cast<std::size_t>(ranks)) {}

    const plain_vector<channel>& channels() const { return channels_; }
    void watch(channel on) { channels_.add(on); }
    bool is_watched(channel on) const {
        for (const channel each : channels_)
            if (each == on) return true;
        return false;
    }
    /// Whether a channel of the context is watched.
    bool is_open(std::uint64_t context) const {
        for (const channel each : channels_)
            if (each.context == context) return true;
        return false;
    }
    void forget(std::uint64_t context) {
        plain_vector<channel> kept;
        for (const channel each : channels_)
            if (each.context != context) kept.add(each);
        channels_ = std::move(kept);
    }

    bool is_fenced(rank_t peer) const { return has_fences_ && fenced_[static_cast<std::size_t>(peer)] != 0; }
    void fence(rank_t peer) {
        has_fences_ = true;
        fenced_[static_cast<std::size_t>(peer)] = 1;
    }

    /// True the first time that it is said.
    bool ends(rank_t peer) { return std::exchange(ended_[static_cast<std::size_t>(peer)], char{1}) == 0; }
    bool has_ended(rank_t peer) const { return ended_[static_cast<std::size_t>(peer)] != 0; }
    /// It has begun anew, in a life that is not fenced.
    void begins(rank_t peer) { ended_[static_cast<std::size_t>(peer)] = fenced_[static_cast<std::size_t>(peer)] = 0; }

    /// Whether a receive waits for peers of which nothing will come: see `MonitoredTransport`.
    bool waits_in_vain(std::span<const rank_t> peers, channel on) const {
        return !peers.empty() && is_open(on.context) && !is_watched(on) && are_gone(peers);
    }

  private:
    bool are_gone(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers)
            if (!is_fenced(peer) && !has_ended(peer)) return false;
        return true;
    }

    bool has_fences_ = false;
    plain_vector<channel> channels_;
    plain_vector<char> ended_, fenced_;  ///< by rank
};

/// Why a receive throws where `waits_in_vain`.
[[gnu::cold, gnu::noinline]] inline abort_notice notice_of_ends(rank_t self, std::span<const rank_t> peers,
                                                                channel on) {
    std::string names;
    for (const rank_t peer : peers) names += text_of({names.empty() ? "" : ", ", peer});
    return {.context = on.context,
            .culprit = peers[0],
            .reason = text_of(
                {"rank ", self, " waits for a message from ranks ", names, ", which will not come: they have ended"})};
}

}}}  // namespace rill::RILL_ABI::detail
