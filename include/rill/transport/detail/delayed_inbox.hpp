#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A message of the inner transport, and the instant at which it is due.
template <class Message>
struct early_message {
    Message inner;
    channel on{};
    time_point due{};
    byte_pieces pieces{};
    std::uint64_t life = 0;  ///< the incarnation of its sender

    bool is_for(std::span<const rank_t> peers, channel wanted) const {
        return on == wanted && contains(peers, inner.source());
    }
};

/// The messages that were taken from the inner transport and not yet given to a receiver. Any activity may call it.
template <class Message>
class delayed_inbox {
  public:
    using held = early_message<Message>;

    void hold(held&& early) {
        const std::lock_guard lock(mutex_);
        if (is_monitored_) early.due = between_ends(early);
        held_.push_back(std::move(early));
    }

    /// From now on the ends of peers are told.
    void monitor() {
        const std::lock_guard lock(mutex_);
        is_monitored_ = true;
    }
    /// A life of a peer has ended. Holds the message that says so until `at`, and until all is due that it has sent as
    /// far as it is held. What is taken later was still on its sender's link and becomes due with the end.
    void hold_end(held&& end, time_point now, time_point at) {
        const std::lock_guard lock(mutex_);
        life_of_peer& of = life_of(end.inner.source(), end.life);
        if (!of.has_ended) {
            const bool is_followed = std::any_of(lives_.begin(), lives_.end(), [&](const life_of_peer& other) {
                return other.peer == of.peer && &other > &of;
            });
            of.end = is_followed ? now : at;
            of.has_ended = true;
            for (const held& each : held_)
                if (each.life == end.life && each.inner.source() == of.peer) of.end = std::max(of.end, each.due);
        }
        end.due = of.end;
        held_.push_back(std::move(end));
    }

    /// When the next message from any of `peers` is due, or never.
    deadline next_due(std::span<const rank_t> peers, channel on) const {
        const std::lock_guard lock(mutex_);
        deadline next = deadline::never;
        for (const held& each : held_)
            if (each.is_for(peers, on)) next = std::min(next, deadline(each.due));
        return next;
    }

    /// Takes the message that was due first, if any is due; if `latest`, the one that was due last, and drops the
    /// others that are due.
    std::optional<held> take(std::span<const rank_t> peers, channel on, time_point now, bool latest = false) {
        const std::lock_guard lock(mutex_);
        const auto is_due = [&](const held& each) { return each.due <= now && each.is_for(peers, on); };
        std::size_t best = held_.size();
        for (std::size_t i = 0; i < held_.size(); ++i)
            if (is_due(held_[i]) && (best == held_.size() || (held_[i].due < held_[best].due) != latest)) best = i;
        std::optional<held> taken = take_at(best);
        if (latest) drop_if(is_due);
        return taken;
    }

    void drop(std::uint64_t context) {
        const std::lock_guard lock(mutex_);
        drop_if([&](const held& each) { return each.on.context == context; });
    }

    void drop_life(rank_t peer, std::uint64_t life) {
        const std::lock_guard lock(mutex_);
        drop_if([&](const held& each) { return each.life == life && each.inner.source() == peer; });
    }

  private:
    struct life_of_peer {
        rank_t peer = no_rank;
        std::uint64_t life = 0;
        bool has_ended = false;
        time_point end{};
    };

    life_of_peer& life_of(rank_t peer, std::uint64_t life) {
        for (life_of_peer& each : lives_)
            if (each.peer == peer && each.life == life) return each;
        return lives_.emplace_back(life_of_peer{.peer = peer, .life = life});
    }
    /// When a message is due: not after the end of its life, and not before that of the last one.
    time_point between_ends(const held& early) {
        const life_of_peer own = life_of(early.inner.source(), early.life);
        if (own.has_ended) return std::min(early.due, own.end);
        time_point due = early.due;
        for (const life_of_peer& each : lives_)
            if (each.peer == own.peer && each.has_ended) due = std::max(due, each.end);
        return due;
    }

    std::optional<held> take_at(std::size_t place) {
        if (place == held_.size()) return std::nullopt;
        std::optional<held> taken(std::move(held_[place]));
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(place));
        return taken;
    }
    template <class Unwanted>
    void drop_if(Unwanted unwanted) {
        held_.erase(std::remove_if(held_.begin(), held_.end(), unwanted), held_.end());
    }

    mutable std::mutex mutex_;
    std::vector<held> held_;  ///< in the order in which they were taken
    bool is_monitored_ = false;
    std::vector<life_of_peer> lives_;  ///< those that were heard of, of each peer in order
};

}}}  // namespace rill::RILL_ABI::detail
