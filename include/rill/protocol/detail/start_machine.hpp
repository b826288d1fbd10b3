#pragma once

#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_loop.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages by which ranks start the rounds of a partial collective.
struct start_kind {
    static constexpr message_kind pushed{"partial starts", 1};  ///< to the rank itself: it has a contribution
    static constexpr message_kind urged{"partial starts", 2};   ///< to the rank itself: a round shall start at once
    static constexpr message_kind ready{"partial starts", 3};   ///< to the coordinator: the sender has a contribution
    static constexpr message_kind urgent{"partial starts", 4};  ///< to the coordinator: start at once
    static constexpr message_kind heard{"partial starts", 5};   ///< the coordinator has heard it, and lives
    static constexpr message_kind start{"partial starts", 6};   ///< the round starts
};

/// What a rank knows of itself when it waits for a round.
struct own_readiness {
    bool has_contribution = false;
    bool is_urgent = false;
    std::uint64_t pushes_seen = 0;  ///< notices of pushes below this number tell nothing new
    std::uint64_t urges_seen = 0;   ///< and so for what makes a round urgent
};

/// One rank's part in deciding when a round starts; a state machine for `run_machine`.
///
/// Each round has a coordinator, drawn from its key among those that take part. Ranks that the trigger asks tell the
/// coordinator once when they have a contribution. When the trigger says so, the coordinator starts the round on all
/// ranks, also on those that no longer take part, along a binomial tree. A notice that comes later is of a round that
/// is over and tells nothing.
///
/// Waiting for others to become ready takes any time. But a rank that has told the coordinator must hear of it within
/// the timeout: otherwise the coordinator, or the link to it, has failed.
template <Trigger Start>
class start_machine {
  public:
    start_machine(const Start& trigger, int size, rank_t self, random_key key, duration timeout)
        : trigger_(trigger), self_(self), key_(key), timeout_(timeout), everyone_(static_cast<std::size_t>(size)) {
        std::iota(everyone_.begin(), everyone_.end(), rank_t{0});
    }

    /// Waits for the start of a round. `partakers`, ascending and not empty, must stay valid until then.
    machine_action begin(std::uint64_t round, std::span<const rank_t> partakers, const own_readiness& own,
                         time_point now) {
        now_ = now;
        round_ = round;
        partakers_ = partakers;
        own_ = own;
        const random_key key = round_key();
        coordinator_ = partakers[multiply_high(key.derive(0).value, partakers.size())];
        const int place = place_of(self_);
        is_asked_ = place >= 0 && trigger_.asks(place, static_cast<int>(partakers.size()), key);
        told_ = {};
        is_heard_ = has_started_ = false;
        to_answer_.clear();
        ready_.clear();
        next_child_ = 0;
        return next();
    }

    machine_action on(const machine_event& event, time_point now) {
        using what = machine_event::what;
        now_ = now;
        if (event.happened == what::nothing_came || event.happened == what::no_room)
            return {.what = machine_action::ask::fail, .peer = event.peer == no_rank ? coordinator_ : event.peer};
        if (event.happened == what::sent && event.peer == coordinator_ && event.head.kind != start_kind::start)
            told_at_ = now;
        if (event.happened == what::arrived) take(event);
        return next();
    }

    std::span<const rank_t> neighbours(segment) const { return everyone_; }
    std::uint64_t round() const { return round_; }
    rank_t coordinator() const { return coordinator_; }
    /// From whom `rank` hears of the start of the round under way; `no_rank` for the coordinator.
    rank_t parent_of(rank_t rank) const {
        const unsigned place = place_in_tree(rank);
        return place == 0 ? no_rank : rank_at(place & (place - 1));
    }

  private:
    random_key round_key() const { return key_.derive(round_); }
    int place_of(rank_t rank) const {
        const auto found = std::lower_bound(partakers_.begin(), partakers_.end(), rank);
        return found != partakers_.end() && *found == rank ? static_cast<int>(found - partakers_.begin()) : -1;
    }

    void take(const machine_event& event) {
        const message_kind kind = event.head.kind;
        if (kind == start_kind::pushed) own_.has_contribution |= event.head.number >= own_.pushes_seen;
        if (kind == start_kind::urged) own_.is_urgent |= event.head.number >= own_.urges_seen;
        if (event.head.number != round_) return;  // of an earlier round
        if (kind == start_kind::heard) is_heard_ = true;
        if (kind == start_kind::start) has_started_ = true;
        if (kind == start_kind::ready || kind == start_kind::urgent) {
            note(event.peer, kind == start_kind::urgent);
            if (!has_started_) to_answer_.push_back(event.peer);
        }
    }

    /// At the coordinator: `rank` is ready.
    void note(rank_t rank, bool is_urgent) {
        const int place = place_of(rank);
        const auto at = std::lower_bound(ready_.begin(), ready_.end(), place);
        if (place >= 0 && (at == ready_.end() || *at != place)) ready_.insert(at, place);
        has_started_ |= is_urgent || trigger_.starts(ready_, static_cast<int>(partakers_.size()), round_key());
    }

    machine_action next() {
        tell_oneself();
        if (has_started_) return pass_on();
        if (coordinator_ != self_ && told_ < to_tell()) {
            told_ = to_tell();
            return sending(told_ == news::urgent ? start_kind::urgent : start_kind::ready, coordinator_);
        }
        if (!to_answer_.empty()) {
            const rank_t peer = to_answer_.back();
            to_answer_.pop_back();
            return sending(start_kind::heard, peer);
        }
        const bool waits_for_coordinator = told_ != news::none && !is_heard_ && coordinator_ != self_;
        return {.what = machine_action::ask::receive,
                .until = waits_for_coordinator ? deadline(told_at_ + timeout_) : deadline::never};
    }

    void tell_oneself() {
        if (has_started_ || coordinator_ != self_ || told_ >= to_tell()) return;
        told_ = to_tell();
        note(self_, told_ == news::urgent);
    }

    /// Sends the start to the next child of the binomial tree, whose root is the coordinator.
    machine_action pass_on() {
        const auto size = static_cast<unsigned>(everyone_.size());
        const unsigned place = place_in_tree(self_);
        const unsigned below = place == 0 ? std::bit_ceil(size) : place & (~place + 1);
        while (below >> ++next_child_ != 0)
            if (const unsigned child = place + (below >> next_child_); child < size)
                return sending(start_kind::start, rank_at(child));
        return {};
    }

    unsigned place_in_tree(rank_t rank) const {
        const auto size = static_cast<int>(everyone_.size());
        return static_cast<unsigned>((rank - coordinator_ + size) % size);
    }
    rank_t rank_at(unsigned place) const {
        return (static_cast<rank_t>(place) + coordinator_) % static_cast<rank_t>(everyone_.size());
    }

    machine_action sending(message_kind kind, rank_t peer) const {
        return {
            .what = machine_action::ask::send, .peer = peer, .kind = kind, .number = round_, .until = now_ + timeout_};
    }

    enum class news : unsigned char { none, ready, urgent };
    news to_tell() const {
        if (own_.is_urgent) return news::urgent;
        return is_asked_ && own_.has_contribution ? news::ready : news::none;
    }

    Start trigger_;
    rank_t self_;
    random_key key_;
    duration timeout_;
    std::vector<rank_t> everyone_;
    time_point now_{};
    std::uint64_t round_ = 0;
    std::span<const rank_t> partakers_{};
    own_readiness own_{};
    rank_t coordinator_ = no_rank;
    bool is_asked_ = false;
    news told_ = news::none;  ///< what the coordinator has been told of this rank
    time_point told_at_{};
    bool is_heard_ = false;
    bool has_started_ = false;
    std::vector<rank_t> ready_;      ///< at the coordinator: the places of the ranks that are ready, ascending
    std::vector<rank_t> to_answer_;  ///< at the coordinator: who has not been told yet that it was heard
    unsigned next_child_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
