#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
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
    [[gnu::noinline]] explicit lookout(int ranks)
        : ended_(static_cast<std::size_t>(ranks)),
          silent_(static_cast<std::size_t>(ranks)),
          fenced_(static_cast<std::size_t>(ranks)) {}

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
    bool ends(rank_t peer) {
        if (has_ended(peer)) return false;
        ended_[static_cast<std::size_t>(peer)] = 1;
        return true;
    }
    bool has_ended(rank_t peer) const { return ended_[static_cast<std::size_t>(peer)] != 0; }
    /// It has begun anew, in a life that is not fenced.
    void begins(rank_t peer) {
        const auto at = static_cast<std::size_t>(peer);
        ended_[at] = silent_[at] = fenced_[at] = 0;
    }
    void be_silent(rank_t peer, bool now) { silent_[static_cast<std::size_t>(peer)] = now ? 1 : 0; }
    bool is_silent(rank_t peer) const { return silent_[static_cast<std::size_t>(peer)] != 0; }

    /// Whether a wait is for peers of which nothing comes: see `MonitoredTransport`.
    bool waits_in_vain(std::span<const rank_t> peers, channel on) const {
        return waits_for(peers, on, [&](rank_t peer) { return is_over(peer) || is_silent(peer); });
    }
    /// Whether one of these peers may be heard again.
    bool waits_for_silent(std::span<const rank_t> peers, channel on) const {
        return waits_in_vain(peers, on) && !waits_for(peers, on, [&](rank_t peer) { return is_over(peer); });
    }

  private:
    bool is_over(rank_t peer) const { return is_fenced(peer) || has_ended(peer); }
    template <class Is>
    bool waits_for(std::span<const rank_t> peers, channel on, Is&& is) const {
        if (peers.empty() || !is_open(on.context) || is_watched(on)) return false;
        for (const rank_t peer : peers)
            if (!is(peer)) return false;
        return true;
    }

    bool has_fences_ = false;
    plain_vector<channel> channels_;
    plain_vector<char> ended_, silent_, fenced_;  ///< by rank
};

/// Why a wait throws where `waits_for_silent`. It names both ends of the link.
[[gnu::cold, gnu::noinline]] inline abort_notice notice_of_silence(rank_t self, std::span<const rank_t> peers,
                                                                   channel on) {
    return {.context = on.context,
            .culprit = peers[0],
            .other = self,
            .reason = text_of({"rank ", self, " waits for rank ", rank_list(peers),
                               ", and hears nothing of it: it hangs, or the link between them is cut"})};
}

/// Why a receive throws where `waits_in_vain`, and not for silence.
[[gnu::cold, gnu::noinline]] inline abort_notice notice_of_ends(rank_t self, std::span<const rank_t> peers,
                                                                channel on) {
    return {.context = on.context,
            .culprit = peers[0],
            .reason = text_of({"rank ", self, " waits for a message from ranks ", rank_list(peers),
                               ", which will not come: they have ended"})};
}

}}}  // namespace rill::RILL_ABI::detail
