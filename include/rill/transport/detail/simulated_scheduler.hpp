#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/fiber.hpp>
#include <rill/transport/detail/simulated_agenda.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

struct parcel;
class strand;

/// The place of an object in a list.
template <class Item>
struct list_hook {
    Item *before = nullptr, *after = nullptr;
};

/// A list of objects, linked by `hooks[Which]` in each of them; it owns none.
template <class Item, std::size_t Which = 0>
class linked_list {
  public:
    Item* first() const { return first_; }
    bool empty() const { return first_ == nullptr; }
    static Item* after(const Item& item) { return item.hooks[Which].after; }

    void push_back(Item& item) noexcept {
        item.hooks[Which] = {last_, nullptr};
        (last_ == nullptr ? first_ : last_->hooks[Which].after) = &item;
        last_ = &item;
    }
    void push_front(Item& item) noexcept {
        item.hooks[Which] = {nullptr, first_};
        (first_ == nullptr ? last_ : first_->hooks[Which].before) = &item;
        first_ = &item;
    }
    void remove(Item& item) noexcept {
        const list_hook<Item> h = item.hooks[Which];
        (h.before == nullptr ? first_ : h.before->hooks[Which].after) = h.after;
        (h.after == nullptr ? last_ : h.after->hooks[Which].before) = h.before;
    }

    /// The visitor may remove what it gets.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (Item *item = first_, *next = nullptr; item != nullptr; item = next) {
            next = after(*item);
            visit(*item);
        }
    }

  private:
    Item* first_ = nullptr;
    Item* last_ = nullptr;
};

/// The activities that wait for one thing, first come, first served.
using wait_list = linked_list<strand>;

enum class waits_for : std::uint8_t { message, room, reading, announcement, event, queue, activity, time };

/// What an activity waits for, and the outcome. It lives on the stack of the waiting activity.
struct wait_record {
    waits_for kind{};
    std::span<const rank_t> peers{};
    channel on{.context = every_context};
    std::uint64_t amount = 0;       ///< the bytes for which room is needed, or the number of the call
    bool ends_with_context = true;  ///< false: the end of its context does not end the wait
    parcel* delivered = nullptr;
    time_point since{};
};

enum class wake : std::uint8_t { called, expired, ended };

/// One activity of a rank: a fiber that is reused for new jobs.
class strand : public appointment {
  public:
    struct job {
        void (*run)(void* context, strand& self) = nullptr;
        void* context = nullptr;
    };

    explicit strand(std::size_t stack_bytes) : appointment(what::expiry), thread(stack_bytes, &strand::main, this) {}

    rank_t rank = no_rank;
    job next{};
    bool running = false;         ///< its job has not ended
    bool stopped = false;         ///< its waits throw
    bool killed = false;          ///< killed with its rank: all its calls throw
    wait_list joining;            ///< activities that wait for its end
    std::exception_ptr thrown{};  ///< the exception that ended it

    wait_record* waiting = nullptr;
    wait_list* among = nullptr;  ///< where it waits
    list_hook<strand> hooks[1]{};
    wake outcome = wake::called;

    rill::detail::fiber thread;

  private:
    static void main(void* self) {
        strand& own = *static_cast<strand*>(self);
        for (; own.next.run != nullptr; own.thread.suspend()) {
            own.next.run(std::exchange(own.next, {}).context, own);
            own.running = false;
        }
    }
};

/// Runs the activities one at a time and moves the clock when none can go on.
class scheduler {
  public:
    /// `end`: the instant at which a run that has not ended is overdue.
    scheduler(std::size_t stack_bytes, time_point end) : stack_bytes_(stack_bytes), end_(end) {}
    scheduler(const scheduler&) = delete;
    scheduler& operator=(const scheduler&) = delete;
    ~scheduler() {
        for (strand& each : strands_) {
            each.next = {};
            each.thread.resume();  // without a job: returns
        }
    }

    time_point now() const { return now_; }
    strand& current() const { return *current_; }
    std::deque<strand>& strands() { return strands_; }
    bool ready() const { return !ready_.empty(); }
    agenda& future() { return future_; }
    std::uint64_t events() const { return events_; }
    /// How long the activities of a rank have waited for others, summed up; 0 if it has never run.
    duration waited(rank_t rank) const {
        const auto at = static_cast<std::size_t>(rank);
        return at < waited_.size() ? waited_[at] : duration{};
    }
    bool is_killed() const { return current_ != nullptr && current_->killed; }
    std::uint64_t trace() const { return trace_; }

    template <class... Parts>
    void record(Parts... parts) {
        trace_ = mix64(trace_, static_cast<std::uint64_t>(now_.ns), static_cast<std::uint64_t>(parts)...);
    }

    /// Starts a job in a strand of a rank; it runs in its turn.
    strand& start(rank_t rank, strand::job job) {
        if (const auto ranks = static_cast<std::size_t>(rank) + 1; waited_.size() < ranks) waited_.resize(ranks);
        strand& started = unused();
        started.rank = rank;
        started.next = job;
        started.running = true;
        started.stopped = started.killed = false;
        ++live_;
        ready_.push_back(started);
        return started;
    }
    /// Starts a job and runs it at once, up to its first `pass` or wait, before the caller goes on.
    strand& start_now(rank_t rank, strand::job job) {
        strand& started = start(rank, job);
        ready_.remove(started);
        ready_.push_front(*current_);
        ready_.push_front(started);
        current_->thread.suspend();
        return started;
    }
    void reuse(strand& ended) noexcept { idle_.push_back(ended); }
    /// Keeps the run going until a later start, which is to come.
    void expects_one_more() noexcept { ++live_; }
    void expects_one_less() noexcept { --live_; }

    /// Lets the others that are ready go on first.
    void pass() {
        ready_.push_back(*current_);
        current_->thread.suspend();
    }

    /// Suspends the current strand until it is called, or `until` has passed, or its context ends.
    wake wait(wait_list& where, wait_record& what, deadline until) {
        strand& own = *current_;
        what.since = now_;
        if (!until.is_never()) future_.add(own, until.at);
        own.waiting = &what;
        own.among = &where;
        where.push_back(own);
        own.thread.suspend();
        return own.outcome;
    }

    void call(strand& waiting, wake outcome = wake::called) noexcept {
        waiting.among->remove(waiting);
        if (waiting.pending()) future_.remove(waiting);
        if (waiting.waiting->kind != waits_for::time) {
            duration& waited = waited_[static_cast<std::size_t>(waiting.rank)];
            waited = waited + (now_ - waiting.waiting->since);
        }
        waiting.waiting = nullptr;
        waiting.outcome = outcome;
        ready_.push_back(waiting);
    }
    void call_all(wait_list& waiting) noexcept {
        while (!waiting.empty()) call(*waiting.first());
    }

    bool is_overdue() const { return is_overdue_; }

    /// Runs until every strand has ended. Calls `world.arrive(appointment&)` for arrivals,
    /// `world.deliver_letter(appointment&)` for letters and `world.fail_by_plan(appointment&)` for faults. Calls
    /// `world.nothing_left()`, which must make a strand ready, when nothing can happen any more, and once when the run
    /// is overdue.
    template <class World>
    void run(World& world) noexcept {
        while (live_ > 0) {
            if (strand* next = ready_.first())
                resume(*next);
            else if (future_.empty())
                world.nothing_left();
            else if (const agenda::entry due = future_.take_first(); due.at <= end_ || is_overdue_)
                happen(world, due);
            else
                expire(world, due);
        }
    }

  private:
    strand& unused() {
        if (idle_.empty()) return strands_.emplace_back(stack_bytes_);
        strand& taken = *idle_.first();
        idle_.remove(taken);
        return taken;
    }

    void resume(strand& next) {
        ready_.remove(next);
        current_ = &next;
        next.thread.resume();
        current_ = nullptr;
        if (next.running) return;
        --live_;
        call_all(next.joining);
    }

    /// Declares the run overdue. The appointment stays due, because the ranks need time to end.
    template <class World>
    void expire(World& world, const agenda::entry& due) {
        now_ = end_;
        is_overdue_ = true;
        future_.add(*due.item, due.at);
        world.nothing_left();
    }

    template <class World>
    void happen(World& world, const agenda::entry& due) {
        now_ = due.at;
        ++events_;
        if (due.item->kind == appointment::what::arrival) return world.arrive(*due.item);
        if (due.item->kind == appointment::what::letter) return world.deliver_letter(*due.item);
        if (due.item->kind == appointment::what::fault) return world.fail_by_plan(*due.item);
        strand& late = *static_cast<strand*>(due.item);
        record(1U, static_cast<unsigned>(late.rank));
        call(late, wake::expired);
    }

    std::size_t stack_bytes_;
    time_point end_;
    bool is_overdue_ = false;
    time_point now_{};
    agenda future_;
    wait_list ready_;
    strand* current_ = nullptr;
    std::size_t live_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t trace_ = 0;
    std::vector<duration> waited_;
    std::deque<strand> strands_;
    wait_list idle_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
