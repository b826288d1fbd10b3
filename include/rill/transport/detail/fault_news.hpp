#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/fault_control.hpp>
#include <rill/transport/detail/lookout.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a faulty transport tells one rank of its peers. News travel from the peer as control does; a message of the
/// peer that gets through brings them along. Any activity may call it.
class fault_news {
  public:
    explicit fault_news(int ranks, rank_t self) : self_(self), watch_(ranks), peers_(static_cast<std::size_t>(ranks)) {}

    /// What is ready on a monitored channel.
    struct item {
        rank_t peer = no_rank;
        channel on{};
        peer_change kind{};
        std::uint64_t life = 0;  ///< how often the peer had been restarted
    };

    bool is_of_context(std::uint64_t context) {
        if (!is_monitored_.load(std::memory_order_acquire)) return false;
        const std::lock_guard lock(mutex_);
        return std::any_of(watch_.channels().begin(), watch_.channels().end(),
                           [&](channel each) { return each.context == context; });
    }
    bool is_monitored() const { return is_monitored_.load(std::memory_order_acquire); }

    /// `life(peer)`: the peer's present life, of those that begin here.
    template <class Life>
    void monitor(channel on, Life&& life) {
        const std::lock_guard lock(mutex_);
        if (!is_monitored_.exchange(true))
            for (rank_t peer = 0; peer < size(); ++peer) of(peer).happened = of(peer).told = life(peer);
        watch_.watch(on);
        for (rank_t peer = 0; peer < size(); ++peer)
            if (watch_.has_ended(peer) && !watch_.is_fenced(peer))
                ready_.push_back({peer, on, peer_change::ended, of(peer).told});
    }
    void close(std::uint64_t context) {
        const std::lock_guard lock(mutex_);
        watch_.forget(context);
        std::erase_if(ready_, [&](const item& each) { return each.on.context == context; });
    }

    /// By now the peer is in its `life`, or after its end.
    void learn(rank_t peer, std::uint64_t life, bool has_ended, duration now) {
        const std::lock_guard lock(mutex_);
        for (; of(peer).happened < life; ++of(peer).happened) {
            send_end(peer, now);
            of(peer).has_ended = false;
            send(peer, peer_change::arrived, of(peer).happened + 1, now);
        }
        if (has_ended) send_end(peer, now);
    }
    /// What else the inner transport tells of a peer's present life.
    void learn(rank_t peer, peer_change kind, duration now) {
        const std::lock_guard lock(mutex_);
        if (kind == peer_change::ended)
            send_end(peer, now);
        else
            send(peer, kind, of(peer).happened, now);
    }

    /// Makes ready what has arrived by now.
    void review(duration now, letter_judge judge) {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < coming_.size();) {
            const rank_t peer = coming_[i].what.peer;
            const bool is_first = std::none_of(coming_.begin(), coming_.begin() + static_cast<std::ptrdiff_t>(i),
                                               [&](const letter& each) { return each.what.peer == peer; });
            if (is_first && coming_[i].way.has_arrived(now, judge))
                arrive(i);
            else
                ++i;
        }
    }
    /// A message of the peer has come.
    void hear(rank_t peer) {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < coming_.size();) coming_[i].what.peer == peer ? arrive(i) : void(++i);
    }

    std::optional<item> take(std::span<const rank_t> peers, channel on) {
        const std::lock_guard lock(mutex_);
        const auto first = std::find_if(ready_.begin(), ready_.end(),
                                        [&](const item& each) { return each.on == on && contains(peers, each.peer); });
        if (first == ready_.end()) return std::nullopt;
        const item taken = *first;
        ready_.erase(first);
        return taken;
    }
    bool waits_in_vain(std::span<const rank_t> peers, channel on) {
        const std::lock_guard lock(mutex_);
        return watch_.waits_in_vain(peers, on);
    }

    void fence(rank_t peer, std::uint64_t life) {
        const std::lock_guard lock(mutex_);
        fenced_.push_back({peer, life});
        has_fences_.store(true, std::memory_order_release);
        if (of(peer).told == life) watch_.fence(peer);
        std::erase_if(coming_, [&](const letter& each) { return each.what.peer == peer && each.what.life == life; });
        std::erase_if(ready_, [&](const item& each) { return each.peer == peer && each.life == life; });
    }
    bool has_fences() const { return has_fences_.load(std::memory_order_acquire); }
    bool is_fenced(rank_t peer, std::uint64_t life) {
        if (!has_fences()) return false;
        const std::lock_guard lock(mutex_);
        return is_cut_off(peer, life);
    }
    /// The life that was told; only where something is monitored.
    std::uint64_t life(rank_t peer) {
        const std::lock_guard lock(mutex_);
        return of(peer).told;
    }

  private:
    struct of_peer {
        std::uint64_t happened = 0;  ///< its life as it is
        bool has_ended = false;
        std::uint64_t told = 0;  ///< its life as this rank has been told
    };
    struct letter {
        item what;
        fault_letter way;
    };

    int size() const { return static_cast<int>(peers_.size()); }
    of_peer& of(rank_t peer) { return peers_[static_cast<std::size_t>(peer)]; }

    bool is_cut_off(rank_t peer, std::uint64_t life) const {
        return std::find(fenced_.begin(), fenced_.end(), std::pair(peer, life)) != fenced_.end();
    }
    void send_end(rank_t peer, duration now) {
        if (of(peer).has_ended) return;
        of(peer).has_ended = true;
        send(peer, peer_change::ended, of(peer).happened, now);
    }
    void send(rank_t peer, peer_change kind, std::uint64_t life, duration now) {
        if (peer == self_ || is_cut_off(peer, life)) return;
        coming_.push_back({{peer, {}, kind, life}, {peer, self_, now}});
    }
    void arrive(std::size_t place) {
        item what = coming_[place].what;
        coming_.erase(coming_.begin() + static_cast<std::ptrdiff_t>(place));
        of(what.peer).told = what.life;
        if (what.kind == peer_change::arrived) watch_.begins(what.peer);
        if (what.kind == peer_change::ended) watch_.ends(what.peer);
        for (const channel on : watch_.channels()) {
            what.on = on;
            ready_.push_back(what);
        }
    }

    std::mutex mutex_;
    rank_t self_;
    std::atomic<bool> is_monitored_{false}, has_fences_{false};
    lookout watch_;
    std::vector<of_peer> peers_;
    std::deque<letter> coming_;
    std::deque<item> ready_;
    std::vector<std::pair<rank_t, std::uint64_t>> fenced_;  ///< lives of peers
};

}}}  // namespace rill::RILL_ABI::detail
