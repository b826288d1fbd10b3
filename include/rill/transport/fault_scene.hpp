#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/control_plane.hpp>
#include <rill/transport/detail/fault_control.hpp>
#include <rill/transport/detail/fault_judge.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// The progress of a fault plan in one run, shared by the `faulty` transports of one process; make it before the ranks
/// begin. All ranks may use it at once. Memory: four numbers for each pair of ranks.
///
/// By default control travels where the plan has faults of messages: a notice, a question and its answer, and the news
/// of a peer's end are each delayed, lost and cut as messages of their link are. What is lost is sent again after 1 ms,
/// then after twice as long each time, up to 1 s. On each rank the first notice that reaches it wins. Waits look for
/// what has arrived every 2 ms. With `control_plane::ideal`, control is that of the inner transport, which no fault
/// strikes.
class fault_scene {
  public:
    fault_scene(int ranks, fault_plan plan, control_plane control = control_plane::travelling)
        : size_(at_least_one(ranks)),
          judge_(std::move(plan), ranks),
          travels_(control == control_plane::travelling && judge_.concerns_messages()),
          restarts_planned_(restarts_of(judge_.plan())),
          notices_(ranks),
          ranks_(new rank_state[static_cast<std::size_t>(ranks)]),
          links_(new link_state[static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)]) {}

    int size() const { return size_; }
    const fault_plan& plan() const { return judge_.plan(); }
    bool is_alive(rank_t rank) const { return !at(rank).is_dead.load(std::memory_order_acquire); }
    /// How often a rank has been restarted.
    int restarts(rank_t rank) const { return static_cast<int>(life(rank)); }
    /// How many messages of a link have been lost.
    std::uint64_t lost(rank_t source, rank_t receiver) const {
        return between(source, receiver).lost.load(std::memory_order_relaxed);
    }

    /// Whether the plan ends a rank's present life.
    bool is_mortal(rank_t rank) const { return judge_.end_of(rank, life(rank)) != nullptr; }
    /// When a rank's present life ends by time alone; `deadline::never` when it does not.
    deadline end_of(rank_t rank, time_point start) const {
        const fault* const end = judge_.end_of(rank, life(rank));
        return end == nullptr || end->skipped != 0 ? deadline::never : deadline(start + end->begins);
    }
    /// Counts a rank's next post and kills the rank before it where the plan says so. True when the rank is dead.
    bool is_dead_before_post(rank_t rank, duration now) {
        const std::uint64_t number = at(rank).posted.fetch_add(1, std::memory_order_relaxed) + 1;
        const fault* const end = judge_.end_of(rank, life(rank));
        if (end != nullptr && end->has_begun(now, number)) kill(rank);
        return !is_alive(rank);
    }
    void kill(rank_t rank) {
        if (!at(rank).is_dead.exchange(true, std::memory_order_acq_rel)) notices_.forget(rank);
    }

    /// The restart that follows a rank's present life, whose `begins` is the time after its end; null where none does.
    const fault* restart_of(rank_t rank) const { return judge_.restart_after(rank, life(rank)); }
    /// The start of a rank that does not begin with the run; null where there is none.
    const fault* start_of(rank_t rank) const { return judge_.start_of(rank); }
    void revive(rank_t rank, duration now) {
        rank_state& own = at(rank);
        own.life.fetch_add(1, std::memory_order_relaxed);
        own.posted.store(0, std::memory_order_relaxed);
        own.is_dead.store(false, std::memory_order_release);
        notices_.catch_up(rank, now);
    }

    double slowness(rank_t rank, duration now) const {
        return judge_.slowness(rank, now, at(rank).posted.load(std::memory_order_relaxed));
    }

    /// Counts the next message of a link and says what happens to it.
    detail::fault_judge::verdict judge(rank_t source, rank_t receiver, duration now) {
        link_state& link = between(source, receiver);
        const std::uint64_t number = link.posted.fetch_add(1, std::memory_order_relaxed) + 1;
        auto verdict = judge_.of_message(source, receiver, number, now);
        verdict.lost |= !is_alive(receiver);
        if (verdict.lost) link.lost.fetch_add(1, std::memory_order_relaxed);
        return verdict;
    }

    bool control_travels() const { return travels_; }
    detail::fault_control& notices() { return notices_; }
    /// Says what happens to a control message of a link.
    detail::fault_judge::verdict judge_letter(rank_t source, rank_t receiver, duration now) {
        link_state& link = between(source, receiver);
        const std::uint64_t number = link.posted.load(std::memory_order_relaxed) + 1;
        const std::uint64_t letter = link.letters.fetch_add(1, std::memory_order_relaxed);
        auto verdict = judge_.of_letter(source, receiver, number, now, letter);
        verdict.lost |= !is_alive(receiver);
        return verdict;
    }

    /// How often a rank has been restarted, and whether it is dead, at one time.
    std::pair<std::uint64_t, bool> state_of(rank_t rank) const {
        while (true) {
            const std::uint64_t number = life(rank);
            const bool is_dead = !is_alive(rank);
            if (number == life(rank)) return {number, is_dead};
        }
    }
    /// Whether the plan restarts any rank.
    bool has_restarts() const { return restarts_planned_ > 0; }
    /// How often the plan restarts ranks, all together.
    std::uint64_t restarts_planned() const { return restarts_planned_; }

    bool reorders() const { return judge_.reorders(); }
    /// How long at most the next message that `receiver` takes from `source` waits to be overtaken; 0: not at all.
    duration holds(rank_t source, rank_t receiver, duration now) const {
        const std::uint64_t taken = between(source, receiver).taken.load(std::memory_order_relaxed);
        return judge_.of_message(source, receiver, taken + 1, now).held;
    }
    void taken(rank_t source, rank_t receiver) {
        between(source, receiver).taken.fetch_add(1, std::memory_order_relaxed);
    }

  private:
    using counter = std::atomic<std::uint64_t>;
    struct rank_state {
        std::atomic<bool> is_dead{false};
        counter life{0};
        counter posted{0};  ///< in this life
    };
    struct link_state {
        counter posted{0};
        counter lost{0};
        counter taken{0};
        counter letters{0};
    };

    static std::uint64_t restarts_of(const fault_plan& plan) {
        std::uint64_t all = 0;
        for (const fault& f : plan.faults) all += f.kind == fault::what::restart;
        return all;
    }
    static int at_least_one(int ranks) {
        RILL_EXPECTS(ranks >= 1, "fault_scene: needs at least one rank");
        return ranks;
    }

    rank_state& at(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
    std::uint64_t life(rank_t rank) const { return at(rank).life.load(std::memory_order_relaxed); }
    link_state& between(rank_t source, rank_t receiver) const {
        return links_[static_cast<std::size_t>(source) * static_cast<std::size_t>(size_) +
                      static_cast<std::size_t>(receiver)];
    }

    int size_;
    detail::fault_judge judge_;
    bool travels_;
    std::uint64_t restarts_planned_;
    detail::fault_control notices_;
    std::unique_ptr<rank_state[]> ranks_;
    std::unique_ptr<link_state[]> links_;
};

}}  // namespace rill::RILL_ABI
