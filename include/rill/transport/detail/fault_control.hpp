#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/fault_judge.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Says what happens to a control message of a link that is sent at a time.
using letter_judge = function_ref<fault_judge::verdict(rank_t source, rank_t receiver, duration now)>;

/// A control message on its way. What is lost is sent again, first after 1 ms, then after twice as long each time, up
/// to 1 s.
class fault_letter {
  public:
    fault_letter() = default;
    fault_letter(rank_t source, rank_t receiver, duration sent) : source_(source), receiver_(receiver), next_(sent) {}

    rank_t source() const { return source_; }
    /// When it arrives, or is sent again.
    duration next() const { return next_; }
    bool has_arrived(duration now, letter_judge judge) {
        while (!is_on_way_ && next_ <= now) {
            const auto fate = judge(source_, receiver_, next_);
            is_on_way_ = !fate.lost;
            next_ = next_ + (fate.lost ? milliseconds(std::int64_t{1} << std::min(repeated_++, 10)) : fate.late);
        }
        return is_on_way_ && next_ <= now;
    }

  private:
    rank_t source_ = no_rank;
    rank_t receiver_ = no_rank;
    duration next_{};
    int repeated_ = 0;
    bool is_on_way_ = false;
};

/// The notices of the ranks of a fault scene, where control travels: each rank knows those that have reached it. Any
/// thread may call it.
class fault_control {
  public:
    explicit fault_control(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

    /// Adds a notice unless this rank knows one of its context, and sends it to all others. Returns the one that holds.
    [[gnu::cold, gnu::noinline]] abort_notice abort(rank_t self, const abort_notice& notice, duration now) {
        const std::lock_guard lock(mutex_);
        if (const abort_notice* first = find(self, {notice.context, notice.first_tag})) return *first;
        issued_.push_back({notice, self});
        of(self).known.push_back(&issued_.back());
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != self) of(peer).coming.push_back({&issued_.back(), {self, peer, now}});
        is_quiet_.store(false, std::memory_order_release);
        return notice;
    }

    /// The notice that ends a channel on a rank, of those that have arrived by now.
    std::optional<abort_notice> notice_for(rank_t self, channel on, duration now, letter_judge judge) {
        if (is_quiet_.load(std::memory_order_acquire)) return std::nullopt;
        return look(self, on, now, judge);
    }

    /// A rank that is asked tells the notice of that channel that it knows.
    [[gnu::noinline]] void forward(rank_t from, rank_t to, channel on, duration now) {
        const std::lock_guard lock(mutex_);
        for (const issued* each : of(from).known) {
            const bool is_meant = each->notice.context == on.context || each->notice.context == every_context;
            const bool is_coming = std::any_of(of(to).coming.begin(), of(to).coming.end(), [&](const letter& other) {
                return other.what == each && other.way.source() == from;
            });
            if (is_meant && !is_coming && !knows(to, *each)) of(to).coming.push_back({each, {from, to, now}});
        }
    }

    /// What a rank has heard ends with its life, and so does what it has sent and what is lost.
    [[gnu::noinline]] void forget(rank_t rank) {
        const std::lock_guard lock(mutex_);
        of(rank) = {};
        for (of_rank& each : ranks_)
            std::erase_if(each.coming, [&](const letter& sent) { return sent.way.source() == rank; });
    }
    /// A rank has begun anew: the others tell it their notices again.
    [[gnu::noinline]] void catch_up(rank_t rank, duration now) {
        const std::lock_guard lock(mutex_);
        for (const issued& each : issued_)
            if (each.by != rank && knows(each.by, each)) of(rank).coming.push_back({&each, {each.by, rank, now}});
    }

  private:
    struct issued {
        abort_notice notice;
        rank_t by;
    };
    struct letter {
        const issued* what;
        fault_letter way;
    };
    struct of_rank {
        std::vector<const issued*> known{};
        std::vector<letter> coming{};
    };

    int size() const { return static_cast<int>(ranks_.size()); }
    of_rank& of(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    bool knows(rank_t rank, const issued& one) {
        const auto& known = of(rank).known;
        return std::find(known.begin(), known.end(), &one) != known.end();
    }

    [[gnu::noinline]] std::optional<abort_notice> look(rank_t self, channel on, duration now, letter_judge judge) {
        const std::lock_guard lock(mutex_);
        std::erase_if(of(self).coming, [&](letter& each) {
            if (!each.way.has_arrived(now, judge)) return false;
            const abort_notice& heard = each.what->notice;
            if (find(self, {heard.context, heard.first_tag}) == nullptr) of(self).known.push_back(each.what);
            return true;
        });
        const abort_notice* const first = find(self, on);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }
    const abort_notice* find(rank_t rank, channel on) {
        for (const std::uint64_t context : {on.context, every_context})
            for (const issued* each : of(rank).known)
                if (each->notice.context == context && each->notice.ends(on.tag)) return &each->notice;
        return nullptr;
    }

    std::mutex mutex_;
    std::atomic<bool> is_quiet_{true};
    std::deque<issued> issued_;  ///< known to ranks by their addresses
    std::vector<of_rank> ranks_;
};

}}}  // namespace rill::RILL_ABI::detail
