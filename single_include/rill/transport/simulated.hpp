// rill 0.1.0: <rill/transport/simulated.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_SIMULATED_HPP
#define RILL_SINGLE_TRANSPORT_SIMULATED_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/simulated.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/simulated.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_STACK_SWITCH_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_STACK_SWITCH_HPP

// ===== rill/transport/detail/stack_switch.hpp

// State that every switch of fibers must save and restore: the exceptions being handled, and the sanitizers' view of
// the stack.

#include <cxxabi.h>

#if defined(__SANITIZE_ADDRESS__)
#define RILL_DETAIL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RILL_DETAIL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define RILL_DETAIL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RILL_DETAIL_TSAN 1
#endif
#endif
#ifdef RILL_DETAIL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef RILL_DETAIL_TSAN
#include <sanitizer/tsan_interface.h>
#ifdef __clang__
#define RILL_DETAIL_SWITCHES __attribute__((disable_sanitizer_instrumentation))  // its no_sanitize keeps calls recorded
#else
#define RILL_DETAIL_SWITCHES __attribute__((no_sanitize("thread")))
#endif
#else
#define RILL_DETAIL_SWITCHES
#endif

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The exceptions that a thread is handling and throwing (Itanium C++ ABI 2.2.2). A fiber may be suspended inside a
/// catch block, so each fiber has its own.
struct exception_state {
    void* caught = nullptr;
    unsigned int uncaught = 0;

    static exception_state exchange(exception_state mine) noexcept {
        auto* const of_thread = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
        return std::exchange(*of_thread, mine);
    }
};

/// Tells the address sanitizer which stack is in use. With each stack the sanitizer has a second one, in which it keeps
/// frames that have been left: of up to eleven megabytes, or less by its option `max_uar_stack_size_log`. It lasts
/// until `release`, and serves all fibers that run on the stack.
class stack_annotation {
  public:
#ifdef RILL_DETAIL_ASAN
    void leave_for(const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(&second_, bottom, size); }
    void arrive(const void** bottom, std::size_t* size) { __sanitizer_finish_switch_fiber(second_, bottom, size); }
    /// Removes the marks of frames that never returned, so that the next user of the memory gets no false report.
    static void forget(const void* bottom, std::size_t size) { __asan_unpoison_memory_region(bottom, size); }
    /// Frees the second stack. The sanitizer does that where a fiber leaves its stack for ever, so this pretends to
    /// arrive on the stack and to leave it. The fiber must have ended.
    __attribute__((no_sanitize("address"))) void release() {
        stack_annotation host;
        const void* host_bottom = nullptr;
        std::size_t host_size = 0;
        host.leave_for(nullptr, 0);
        arrive(&host_bottom, &host_size);
        __sanitizer_start_switch_fiber(nullptr, host_bottom, host_size);
        host.arrive(nullptr, nullptr);
        second_ = nullptr;
    }

  private:
    void* second_ = nullptr;
#else
    void leave_for(const void*, std::size_t) {}
    void arrive(const void**, std::size_t*) {}
    static void forget(const void*, std::size_t) {}
    void release() {}
#endif
};

/// Tells the thread sanitizer which fiber runs. The sanitizer records a call stack for each fiber. A function that
/// switches must not be instrumented, or it would enter one recorded stack and leave another.
class race_annotation {
  public:
    race_annotation() = default;
    race_annotation(const race_annotation&) = delete;
    race_annotation& operator=(const race_annotation&) = delete;
#ifdef RILL_DETAIL_TSAN
    ~race_annotation() { __tsan_destroy_fiber(fiber_); }
    RILL_DETAIL_SWITCHES void enter() {
        host_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(fiber_, 0);
    }
    RILL_DETAIL_SWITCHES void leave() { __tsan_switch_to_fiber(host_, 0); }

  private:
    void* fiber_ = __tsan_create_fiber(0);
    void* host_ = nullptr;
#else
    void enter() {}
    void leave() {}
#endif
};

/// A function with its own stack, behind a guard page. The function must return before its fiber is destroyed: nothing
/// unwinds a suspended fiber. `Context`: has that stack and its annotation, calls a function on it that never returns
/// when it is first entered, and switches to it (`enter`) and back (`leave`).
template <class Context>
class fiber_on {
  public:
    fiber_on(std::size_t stack_bytes, void (*body)(void*), void* argument)
        : context_(stack_bytes, &fiber_on::run, this), body_(body), argument_(argument) {}
    fiber_on(const fiber_on&) = delete;
    fiber_on& operator=(const fiber_on&) = delete;
    ~fiber_on() { stack_annotation::forget(context_.bottom(), context_.size()); }

    /// Runs it until it suspends or returns.
    RILL_DETAIL_SWITCHES void resume() {
        exceptions_ = exception_state::exchange(exceptions_);
        stack_annotation host;
        host.leave_for(context_.bottom(), context_.size());
        race_.enter();
        context_.enter();
        host.arrive(nullptr, nullptr);
        exceptions_ = exception_state::exchange(exceptions_);
    }

    /// Called by the fiber's own body; returns control to the caller of `resume`.
    RILL_DETAIL_SWITCHES void suspend() {
        leave();
        context_.annotation().arrive(&host_bottom_, &host_size_);
    }

  private:
    RILL_DETAIL_SWITCHES static void run(void* self) noexcept {
        fiber_on& fiber = *static_cast<fiber_on*>(self);
        fiber.context_.annotation().arrive(&fiber.host_bottom_, &fiber.host_size_);
        fiber.body_(fiber.argument_);
        fiber.leave();
    }
    RILL_DETAIL_SWITCHES void leave() {
        context_.annotation().leave_for(host_bottom_, host_size_);
        race_.leave();
        context_.leave();
    }

    Context context_;
    void (*body_)(void*);
    void* argument_;
    exception_state exceptions_{};
    race_annotation race_{};
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_STACK_SWITCH_HPP

// ===== rill/transport/detail/fiber.hpp

// Fibers on Boost.Context.

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

struct fiber_stack {
    boost::context::stack_context memory{};
    stack_annotation annotation{};
};

/// A thread's cache of stacks: those of fibers that have ended serve the next fibers that ask for as many bytes. A
/// fresh stack costs three system calls, and a fault for each page that is touched. A shelf keeps at most `most`
/// stacks of at most `most_bytes` together, all of one size, until its thread ends.
class stack_shelf {
  public:
#ifdef RILL_DETAIL_ASAN
    static constexpr std::size_t most = 32;  // each has some megabytes of the sanitizer's
#else
    static constexpr std::size_t most = 256;
#endif
    static constexpr std::size_t most_bytes = std::size_t{1} << 27;

    static fiber_stack take(std::size_t bytes) {
        stack_shelf* const own = of_this_thread();
        if (own == nullptr || own->bytes_ != bytes || own->kept_.empty())
            return {.memory = boost::context::protected_fixedsize_stack(bytes).allocate()};
        const fiber_stack kept = own->kept_.back();
        own->kept_.pop_back();
        return kept;
    }
    /// `bytes` must be those with which `stack` was taken.
    static void give_back(fiber_stack& stack, std::size_t bytes) noexcept {
        stack_shelf* const own = of_this_thread();
        if (own != nullptr && own->bytes_ != bytes) own->keep_only(bytes);
        if (own != nullptr && own->has_place())
            own->kept_.push_back(stack);
        else
            unmap(stack);
    }

    stack_shelf() { kept_.reserve(most); }
    stack_shelf(const stack_shelf&) = delete;
    stack_shelf& operator=(const stack_shelf&) = delete;
    ~stack_shelf() {
        is_gone = true;
        keep_only(0);
    }

  private:
    /// Null while a thread exits after its shelf has been destroyed.
    static stack_shelf* of_this_thread() {
        if (is_gone) return nullptr;
        thread_local stack_shelf own;
        return &own;
    }
    static void unmap(fiber_stack& stack) {
        stack.annotation.release();
        boost::context::protected_fixedsize_stack(stack.memory.size).deallocate(stack.memory);
    }
    bool has_place() const { return kept_.size() < most && (kept_.size() + 1) * bytes_ <= most_bytes; }
    void keep_only(std::size_t bytes) {
        for (fiber_stack& each : kept_) unmap(each);
        kept_.clear();
        bytes_ = bytes;
    }

    static inline thread_local bool is_gone = false;

    std::vector<fiber_stack> kept_;
    std::size_t bytes_ = 0;  ///< what was asked for of each
};

/// A stack behind a guard page, and Boost.Context's switch. It does not use `boost::context::fiber`: that class unwinds
/// by an exception which no `catch (...)` may swallow, and sanitizers would instrument its wrappers.
class boost_context {
  public:
    boost_context(std::size_t stack_bytes, void (*run)(void*), void* argument)
        : stack_bytes_(stack_bytes),
          stack_(stack_shelf::take(stack_bytes)),
          run_(run),
          argument_(argument),
          context_(boost::context::detail::make_fcontext(stack_.memory.sp, stack_.memory.size, &boost_context::start)) {
    }
    boost_context(const boost_context&) = delete;
    boost_context& operator=(const boost_context&) = delete;
    ~boost_context() { stack_shelf::give_back(stack_, stack_bytes_); }

    const void* bottom() const { return static_cast<const char*>(stack_.memory.sp) - stack_.memory.size; }
    std::size_t size() const { return stack_.memory.size; }
    stack_annotation& annotation() { return stack_.annotation; }

    RILL_DETAIL_SWITCHES void enter() { context_ = boost::context::detail::jump_fcontext(context_, this).fctx; }
    RILL_DETAIL_SWITCHES void leave() { host_ = boost::context::detail::jump_fcontext(host_, nullptr).fctx; }

  private:
    RILL_DETAIL_SWITCHES static void start(boost::context::detail::transfer_t from) noexcept {
        boost_context& own = *static_cast<boost_context*>(from.data);
        own.host_ = from.fctx;
        own.run_(own.argument_);
    }

    std::size_t stack_bytes_;
    fiber_stack stack_;
    void (*run_)(void*);
    void* argument_;
    boost::context::detail::fcontext_t context_;
    boost::context::detail::fcontext_t host_ = nullptr;
};

using fiber = fiber_on<boost_context>;

}}}  // namespace rill::RILL_ABI::detail

// ===== rill/transport/detail/simulated_agenda.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// Something that happens at an instant; the base class of the objects to which it happens.
struct appointment {
    enum class what : std::uint8_t { expiry, arrival, letter, fault };
    static constexpr std::size_t nowhere = ~std::size_t{0};

    explicit appointment(what happens) : kind(happens) {}

    what kind;
    std::size_t place = nowhere;  ///< in the agenda's heap

    bool pending() const { return place != nowhere; }
};

/// The future appointments, in the order (time, sequence). Adding, removing and taking cost O(log n).
class agenda {
  public:
    struct entry {
        time_point at{};
        std::uint64_t sequence = 0;
        appointment* item = nullptr;

        friend bool operator<(const entry& a, const entry& b) {
            return a.at != b.at ? a.at < b.at : a.sequence < b.sequence;
        }
    };

    bool empty() const { return heap_.empty(); }

    void add(appointment& item, time_point at) {
        heap_.push_back({at, sequence_++, &item});
        rise(heap_.size() - 1, heap_.back());
    }

    void remove(appointment& item) noexcept {
        const std::size_t hole = item.place;
        item.place = appointment::nowhere;
        const entry last = heap_.back();
        heap_.pop_back();
        if (hole == heap_.size()) return;
        if (hole > 0 && last < heap_[(hole - 1) / 2])
            rise(hole, last);
        else
            sink(hole, last);
    }

    entry take_first() noexcept {
        const entry first = heap_.front();
        remove(*first.item);
        return first;
    }

  private:
    void put(std::size_t i, const entry& e) {
        heap_[i] = e;
        e.item->place = i;
    }
    void rise(std::size_t i, const entry& moving) {
        const entry e = moving;
        for (; i > 0 && e < heap_[(i - 1) / 2]; i = (i - 1) / 2) put(i, heap_[(i - 1) / 2]);
        put(i, e);
    }
    void sink(std::size_t i, const entry& moving) {
        const entry e = moving;
        for (std::size_t child = 2 * i + 1; child < heap_.size(); child = 2 * i + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
            if (!(heap_[child] < e)) break;
            put(i, heap_[child]);
            i = child;
        }
        put(i, e);
    }

    std::vector<entry> heap_;
    std::uint64_t sequence_ = 0;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_scheduler.hpp

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

// ===== rill/transport/detail/simulated_network.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated {

using rill::control_plane;

/// Describes the network and the machines of a run: a directed link between every two ranks, and a card at each rank. A
/// message of n bytes starts when its link and its sender's card are free, occupies them for n / bandwidth, and arrives
/// `latency` later (the α-β model), or when the receiver's card has received all of it. A link keeps messages in order.
struct network {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;  ///< bytes per second of each directed link; 0: without limit
    /// Any `LinkModel`, or none. Where it is set, it replaces `latency` and `bandwidth`.
    any_model<network_link(rank_t source, rank_t receiver)> links{};
    /// Whether the two directions between two ranks share one line, which one message at a time occupies.
    bool half_duplex = false;
    /// Any `CardModel`, or none. Without it the ranks' cards limit nothing.
    any_model<network_card(rank_t)> cards{};
    /// Any `ComputeModel`, or none. It says how long `compute` takes; without it, no time.
    compute_model computing{};
    /// The faults of the run; they may name only ranks of the run.
    fault_plan faults{};
    /// The places for ranks, if there are more than ranks: free until `faults::start` lets a rank take one.
    int seats = 0;
    /// Travelling control takes the latency of its link and no bandwidth. Faults delay and lose it; what is lost is
    /// sent again, first after `1 ms` or four latencies, then after twice as long each time, up to 1 s; and is given up
    /// after about a minute. So loss delays control, and a cut stops it.
    ///
    /// A notice goes straight from the rank that issues it to every other rank. On each rank the first that reaches it
    /// wins, its own included: notices that race can win on different ranks. `inquire` asks the peer and waits for its
    /// answer; with `deadline::immediate` it returns what answers to earlier inquiries have said. A rank on which the
    /// call has ended answers with the notice that has ended it.
    control_plane control = control_plane::travelling;
    /// A rank that monitors is told that a peer is silent when control of that peer has been lost for so long, and that
    /// it has recovered when anything of it arrives again. Ranks give signs of life when a link is cut.
    duration silence = seconds(3);
    duration jitter{};                                  ///< adds to each message's latency, uniform in [0, jitter]
    std::uint64_t seed = 0;                             ///< of the jitter
    std::size_t mailbox_bytes = std::size_t{64} << 20;  ///< bound of bytes handed over to a rank and not received
    duration poll = nanoseconds(100);                   ///< time of a poll that finds nothing, so that loops advance
    /// Of each activity, reserved but not touched. A thread keeps 256 stacks, up to 128 MiB, for its next runs.
    std::size_t stack_bytes = std::size_t{512} << 10;
    /// A run that takes longer than this ends with `deadlock`, so that tests detect endless runs. 0: no bound.
    duration longest{};

    friend bool operator==(const network&, const network&) = default;

    network_link link_of(rank_t source, rank_t receiver) const {
        return links ? links(source, receiver) : network_link{latency, bandwidth};
    }
    double share_of_line() const { return half_duplex ? 1 : 0; }
    network_card card_of(rank_t rank) const { return cards ? cards(rank) : network_card{}; }

    /// The time that the jitter adds to message `number` of a link.
    duration extra(rank_t source, rank_t receiver, std::uint64_t number) const {
        if (jitter.ns <= 0) return {};
        const random_key link = random_key{seed}.derive(static_cast<unsigned>(source), static_cast<unsigned>(receiver));
        random_sequence of_message(link.derive(number));
        return duration(static_cast<std::int64_t>(of_message.below(static_cast<std::uint64_t>(jitter.ns) + 1)));
    }
};

}}}  // namespace rill::RILL_ABI::simulated

// ===== rill/transport/detail/simulated_report.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// The traffic of one directed link.
struct link_report {
    rank_t source = no_rank;
    rank_t receiver = no_rank;
    std::uint64_t messages = 0;  ///< posted, including those that were lost
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;          ///< by faults, or because the receiver was dead
    std::uint64_t duplicated = 0;    ///< by faults; the copies are not counted as posted
    std::uint64_t held = 0;          ///< held back by faults, so that messages of other senders overtake them
    std::uint64_t control_lost = 0;  ///< dispatches of travelling control that faults have lost; each is repeated

    friend constexpr bool operator==(const link_report&, const link_report&) = default;
};

/// How a rank spent its time.
struct rank_report {
    duration computing{};  ///< in `compute`
    duration waiting{};    ///< waiting for other ranks or activities, summed over its activities
    duration ended{};      ///< when its body returned, since the start of the run
    int lives = 1;         ///< one more than its restarts; 0 for a seat that stayed free

    friend constexpr bool operator==(const rank_report&, const rank_report&) = default;
};

/// The result of a run. Runs with equal reports took the same course.
struct report {
    duration elapsed{};            ///< virtual time at which the last rank ended
    std::uint64_t events = 0;      ///< arrivals (also of travelling control), expired waits and faults
    std::uint64_t messages = 0;    ///< posted
    std::uint64_t bytes = 0;       ///< posted
    std::uint64_t trace_hash = 0;  ///< of all posts and events, in order, with their times
    std::vector<rank_report> ranks{};
    std::vector<link_report> links{};  ///< the links that were used, ascending in source, then receiver

    friend bool operator==(const report&, const report&) = default;
};

}}}  // namespace rill::RILL_ABI::simulated

// ===== rill/transport/detail/simulated_table.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// A hash table; its values move when others are inserted or erased. Open addressing without tombstones: a table whose
/// entries come and go allocates nothing once it has grown.
template <class Key, class Value>
class table {
  public:
    Value* find(const Key& key) {
        if (slots_.empty()) return nullptr;
        slot& s = slots_[place_of(key)];
        return s.used ? &s.value : nullptr;
    }

    /// The value of `key`; inserts one where there is none.
    Value& operator[](const Key& key) {
        if (4 * (count_ + 1) > 3 * slots_.size()) grow();
        slot& s = slots_[place_of(key)];
        if (!s.used) {
            s = slot{key, Value{}, true};
            ++count_;
        }
        return s.value;
    }

    void erase(const Key& key) noexcept {
        if (slots_.empty()) return;
        std::size_t hole = place_of(key);
        if (!slots_[hole].used) return;
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = (hole + 1) & mask; slots_[i].used; i = (i + 1) & mask) {
            const std::size_t home = slots_[i].key.hash() & mask;
            if (((i - home) & mask) < ((i - hole) & mask)) continue;
            slots_[hole] = std::move(slots_[i]);
            hole = i;
        }
        slots_[hole] = slot{};
        --count_;
    }

    /// Erases entries; costs a pass over the whole table.
    template <class Predicate>
    void erase_if(Predicate&& is_meant) {
        std::vector<slot> old(slots_.size());
        old.swap(slots_);
        count_ = 0;
        for (slot& s : old)
            if (s.used && !is_meant(s.key)) {
                slots_[place_of(s.key)] = std::move(s);
                ++count_;
            }
    }

    std::size_t size() const { return count_; }

    /// Visits all entries, in no particular order.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const slot& s : slots_)
            if (s.used) visit(s.key, s.value);
    }

  private:
    struct slot {
        Key key{};
        Value value{};
        bool used = false;
    };

    /// The place of `key`, or the place where it would be inserted.
    std::size_t place_of(const Key& key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = key.hash() & mask;
        while (slots_[i].used && !(slots_[i].key == key)) i = (i + 1) & mask;
        return i;
    }

    void grow() {
        std::vector<slot> old(slots_.empty() ? 16 : 2 * slots_.size());
        old.swap(slots_);
        for (slot& s : old)
            if (s.used) slots_[place_of(s.key)] = std::move(s);
    }

    std::vector<slot> slots_;
    std::size_t count_ = 0;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_links.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The ranks' cards and the directed links in use; computes when messages arrive.
class link_table {
  public:
    link_table(int ranks, const network& chosen) : network_(chosen), faults_(chosen.faults, ranks) {
        if (!network_.cards) return;
        for (rank_t rank = 0; rank < ranks; ++rank) cards_.push_back({.limits = network_.card_of(rank)});
    }

    const rill::detail::fault_judge& faults() const { return faults_; }

    /// When the first and the last byte of a message reach its receiver.
    struct flight {
        time_point head{}, tail{};
        bool lost = false;
        bool twice = false;
        duration held{};  ///< how long at most it waits to be overtaken
    };

    /// Computes the flight of a message that is posted now, and occupies its link and its sender's card.
    flight depart(time_point now, rank_t source, rank_t receiver, std::size_t bytes) {
        // NOLINTNEXTLINE(readability-suspicious-call-argument): the way back
        const time_point back_free_at = network_.half_duplex ? link_between(receiver, source).free_at : time_point{};
        used_link& way = link_between(source, receiver);
        const auto fate = faults_.concerns_messages()
                              ? faults_.of_message(source, receiver, way.messages + 1, now - time_point{})
                              : rill::detail::fault_judge::verdict{};
        const duration on_link = transfer_time(bytes, way.properties.bandwidth);
        time_point start = std::max({now, way.free_at, back_free_at});
        duration length = on_link;
        if (!cards_.empty()) {
            card& sends = cards_[static_cast<std::size_t>(source)];
            start = std::max(start, sends.can_send_at);
            const duration on_card = transfer_time(bytes, sends.limits.send);
            if (sends.limits.send != 0) sends.can_send_at = start + on_card;
            length = std::max(length, on_card);
        }
        way.free_at = start + on_link;
        const time_point head =
            start + way.properties.latency + network_.extra(source, receiver, way.messages) + fate.late;
        ++way.messages;
        way.bytes += bytes;
        if (fate.lost) return ++way.lost, flight{.lost = true};
        way.duplicated += fate.twice ? 1U : 0U;
        way.held += fate.held.ns > 0 ? 1U : 0U;
        way.last_head = std::max(way.last_head, head);
        way.last_tail = std::max(way.last_tail, head + length);
        return {.head = way.last_head, .tail = way.last_tail, .twice = fate.twice, .held = fate.held};
    }

    /// When a control message that is sent now arrives; nothing if it is lost. It occupies neither link nor card.
    std::optional<time_point> depart_letter(time_point now, rank_t source, rank_t receiver) {
        used_link& way = link_between(source, receiver);
        const std::uint64_t letter = ++way.letters;
        const auto fate = faults_.concerns_messages()
                              ? faults_.of_letter(source, receiver, way.messages + 1, now - time_point{}, letter)
                              : rill::detail::fault_judge::verdict{};
        if (fate.lost) return ++way.control_lost, std::nullopt;
        return now + way.properties.latency + network_.extra(source, receiver, ~letter) + fate.late;
    }

    duration latency(rank_t source, rank_t receiver) { return link_between(source, receiver).properties.latency; }

    /// Whether messages queue at the receiver's card because its speed is limited.
    bool queues_at(rank_t receiver) const {
        return !cards_.empty() && cards_[static_cast<std::size_t>(receiver)].limits.receive != 0;
    }

    /// When the receiver's card has received a message whose first byte arrives now; occupies the card until then.
    time_point land(time_point now, rank_t receiver, time_point tail, std::size_t bytes) {
        card& takes = cards_[static_cast<std::size_t>(receiver)];
        const time_point start = std::max(now, takes.can_receive_at);
        return takes.can_receive_at = std::max(tail, start + transfer_time(bytes, takes.limits.receive));
    }

    void lose(rank_t source, rank_t receiver) { ++link_between(source, receiver).lost; }

    std::vector<link_report> report() const {
        std::vector<link_report> all;
        links_.for_each([&](const ends& key, const used_link& way) {
            if (way.messages == 0 && way.control_lost == 0) return;
            all.push_back({key.source, key.receiver, way.messages, way.bytes, way.lost, way.duplicated, way.held,
                           way.control_lost});
        });
        std::sort(all.begin(), all.end(), [](const link_report& a, const link_report& b) {
            return a.source != b.source ? a.source < b.source : a.receiver < b.receiver;
        });
        return all;
    }

  private:
    struct ends {
        rank_t source = no_rank;
        rank_t receiver = no_rank;

        std::size_t hash() const { return mix64(static_cast<unsigned>(source), static_cast<unsigned>(receiver)); }
        friend bool operator==(const ends&, const ends&) = default;
    };
    struct used_link {
        network_link properties{};
        time_point free_at{};
        time_point last_head{};
        time_point last_tail{};
        std::uint64_t messages = 0;
        std::uint64_t bytes = 0;
        std::uint64_t lost = 0;
        std::uint64_t duplicated = 0;
        std::uint64_t control_lost = 0;
        std::uint64_t held = 0;
        std::uint64_t letters = 0;
    };
    struct card {
        network_card limits{};
        time_point can_send_at{};
        time_point can_receive_at{};
    };

    used_link& link_between(rank_t source, rank_t receiver) {
        const ends key{source, receiver};
        if (used_link* const known = links_.find(key)) return *known;
        used_link& made = links_[key];
        made.properties = network_.link_of(source, receiver);
        return made;
    }

    network network_;
    rill::detail::fault_judge faults_;
    table<ends, used_link> links_;
    std::vector<card> cards_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_post_office.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// A message from its post until sender and receiver have released it.
struct parcel : appointment {
    enum class stage : std::uint8_t { on_the_way, held, arrived, taken, done, lost };
    enum list : std::uint8_t { of_source, of_channel, of_receiver, lists };

    parcel() : appointment(what::arrival) {}

    rank_t source = no_rank;
    rank_t receiver = no_rank;
    int life = 0;  ///< of its source
    channel on{};
    byte_pieces pieces{};
    buffer owned{};
    bool handed_over = false;
    bool sender_holds = false;  ///< a `sending` refers to it
    stage at = stage::on_the_way;
    time_point tail{};    ///< when its last byte arrives
    bool queues = false;  ///< its appointment is the arrival of its first byte; then it waits for the receiver's card
    duration holds{};     ///< how long at most it waits at its receiver to be overtaken
    wait_list reading;    ///< activities that wait until it has been read
    list_hook<parcel> hooks[lists]{};
};

template <parcel::list Which>
using parcel_list = linked_list<parcel, Which>;

using rill::detail::contains;

/// All messages of all ranks. It uses memory only for messages under way, none for idle pairs of ranks.
class post_office {
  public:
    parcel& accept(rank_t source, int life, rank_t receiver, channel on) {
        if (unused_.empty()) unused_.push_back(parcels_.emplace_back());
        parcel& p = *unused_.first();
        unused_.remove(p);
        p.source = source;
        p.life = life;
        p.receiver = receiver;
        p.on = on;
        p.at = parcel::stage::on_the_way;
        p.queues = false;
        return p;
    }
    void give_back(parcel& p) noexcept {
        buffer().swap(p.owned);
        unused_.push_back(p);
    }

    void store(parcel& p) {
        p.at = parcel::stage::arrived;
        by_source_[{p.receiver, p.source, p.on}].push_back(p);
        by_channel_[{p.receiver, no_rank, p.on}].push_back(p);
    }
    void remove(parcel& p) noexcept {
        remove_from(by_source_, {p.receiver, p.source, p.on}, p);
        remove_from(by_channel_, {p.receiver, no_rank, p.on}, p);
    }

    /// The earliest arrival from any of `peers`, or null.
    parcel* first(rank_t receiver, std::span<const rank_t> peers, channel on) {
        if (peers.size() == 1) {
            const auto* from_peer = by_source_.find({receiver, peers[0], on});
            return from_peer == nullptr ? nullptr : from_peer->first();
        }
        const auto* all = by_channel_.find({receiver, no_rank, on});
        return all == nullptr ? nullptr : skip(all->first(), peers);
    }
    /// The next message from any of `peers` that arrived after `p` on its channel, or null.
    static parcel* next(const parcel& p, std::span<const rank_t> peers) {
        return skip(parcel_list<parcel::of_channel>::after(p), peers);
    }

  private:
    struct address {
        rank_t receiver = no_rank;
        rank_t source = no_rank;
        channel on{};

        std::size_t hash() const {
            return mix64(static_cast<unsigned>(receiver), static_cast<unsigned>(source), on.context, on.tag);
        }
        friend bool operator==(const address&, const address&) = default;
    };

    static parcel* skip(parcel* p, std::span<const rank_t> peers) {
        while (p != nullptr && !contains(peers, p->source)) p = parcel_list<parcel::of_channel>::after(*p);
        return p;
    }

    template <class Lists>
    static void remove_from(Lists& lists, const address& key, parcel& p) noexcept {
        auto* list = lists.find(key);
        list->remove(p);
        if (list->empty()) lists.erase(key);
    }

    std::deque<parcel> parcels_;
    parcel_list<parcel::of_receiver> unused_;
    table<address, parcel_list<parcel::of_source>> by_source_;
    table<address, parcel_list<parcel::of_channel>> by_channel_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_rank_state.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The planned end of a rank, or its restart.
struct turning_point : appointment {
    turning_point() : appointment(what::fault) {}
    rank_t rank = no_rank;
};

/// What a rank that monitors has been told of another.
struct known_peer {
    int life = 0;  ///< the latest one; 0: its seat was always free
    bool has_ended = false;
    bool is_silent = false;
};

/// What another rank has asked this one and waits to hear.
struct question {
    rank_t by = no_rank;
    std::uint64_t context = 0;
    std::uint64_t number = 0;
};

/// The state of one rank.
struct rank_state {
    wait_list receiving;
    wait_list posting;                      ///< activities that wait for room in this rank's mailbox
    wait_list inquiring;                    ///< activities that ask this rank
    std::vector<question> asked;            ///< where control travels
    parcel_list<parcel::of_receiver> mail;  ///< under way or arrived
    parcel_list<parcel::of_source> held;    ///< messages that wait to be overtaken, and those behind them
    std::size_t handed_over = 0;            ///< bytes in `mail` that were handed over
    traffic counted{};
    rill::detail::call_table calls{};
    strand* main = nullptr;
    std::vector<channel> monitored;
    std::vector<known_peer> known;               ///< by rank, once it monitors
    std::vector<std::pair<rank_t, int>> fenced;  ///< lives
    bool is_alive = false;
    bool has_ended = false;     ///< its body has ended, or it was killed
    bool has_departed = false;  ///< its body has returned or thrown
    bool begins_anew = false;   ///< as soon as its last life is over
    int lives = 0;
    std::uint64_t posted = 0;  ///< in this life
    std::uint64_t computations = 0;
    duration computing{};
    time_point ended{};
    std::unique_ptr<turning_point> next_fault{};
    std::optional<abort_notice> failure{};  ///< what its body has thrown
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_who_waits.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

inline std::string ranks_text(std::span<const rank_t> ranks) {
    constexpr std::size_t shown = 8;
    std::string text = ranks.size() == 1 ? "rank " : "any of ranks ";
    for (std::size_t i = 0; i < ranks.size() && i < shown; ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(ranks[i]);
    }
    if (ranks.size() > shown) text += ", … (" + std::to_string(ranks.size()) + " ranks)";
    return text;
}

inline std::string channel_text(channel on) {
    return " (context " + std::to_string(on.context) + ", tag " + std::to_string(on.tag) + ")";
}

/// Says what an activity waits for: "rank 0 waits for a message from rank 1 (context 0, tag 7)".
inline std::string wait_text(rank_t rank, const wait_record& what) {
    const std::string who = "rank " + std::to_string(rank) + " waits for ";
    switch (what.kind) {
        case waits_for::message: return who + "a message from " + ranks_text(what.peers) + channel_text(what.on);
        case waits_for::room:
            return who + "room for " + std::to_string(what.amount) + " bytes in the mailbox of " +
                   ranks_text(what.peers) + channel_text(what.on);
        case waits_for::reading:
            return who + ranks_text(what.peers) + " to receive and release its message" + channel_text(what.on);
        case waits_for::announcement:
            return who + ranks_text(what.peers) + " to enter call " + std::to_string(what.amount) + " (context " +
                   std::to_string(what.on.context) + ")";
        case waits_for::event: return who + "an event";
        case waits_for::queue: return who + "a queue";
        case waits_for::activity: return who + "one of its activities to end";
        case waits_for::time: break;
    }
    return who + "a time that is never reached";
}

/// Lists the waits of all activities.
inline std::string who_waits(const std::deque<strand>& strands) {
    constexpr std::size_t shown = 32;
    std::string text;
    std::size_t count = 0;
    for (const strand& each : strands) {
        if (each.waiting == nullptr || ++count > shown) continue;
        if (count > 1) text += "; ";
        text += wait_text(each.rank, *each.waiting);
    }
    if (count > shown) text += "; and " + std::to_string(count - shown) + " more";
    return text;
}

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_control.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// Waits, and the notices that end them early. Each rank knows those that have reached it.
class control {
  public:
    control(int ranks, const network& chosen)
        : scheduler_(chosen.stack_bytes, chosen.longest.ns > 0 ? time_point{} + chosen.longest : deadline::never.at),
          poll_(chosen.poll),
          monitors_(static_cast<std::size_t>(ranks)),
          known_(chosen.control == control_plane::ideal ? 1 : static_cast<std::size_t>(ranks)) {}

    time_point now() const { return scheduler_.now(); }
    scheduler& activities() { return scheduler_; }
    const strand& current() const { return scheduler_.current(); }

    bool passed(deadline until) const { return until.at <= now(); }

    /// Lets the time of a poll that finds nothing pass.
    void poll() noexcept {
        wait_record looking{.kind = waits_for::time, .ends_with_context = false};
        scheduler_.wait(idle_, looking, now() + poll_);
    }

    void throw_if_killed() const {
        if (scheduler_.is_killed()) throw rank_killed{scheduler_.current().rank};
    }

    /// Throws what has ended the channel, or the current activity.
    void throw_if_ended(channel on) const {
        throw_if_killed();
        const strand& own = scheduler_.current();
        if (has_notices_)
            if (const abort_notice* notice = find_notice(own.rank, on)) throw_error(*notice);
        if (own.stopped) rill::detail::throw_stopped(own.rank, on.context);
    }

    /// True when called, false when `until` has passed.
    bool wait(wait_list& where, wait_record what, deadline until) {
        return concluded(scheduler_.wait(where, what, until), what);
    }

    void sleep_until(time_point instant) {
        throw_if_ended({every_context});
        if (instant <= now()) return;
        wait(idle_, {.kind = waits_for::time}, instant);
    }

    /// Ends all present and future waits of an activity.
    void stop(strand& activity) noexcept {
        activity.stopped = true;
        end_wait(activity);
    }
    void end_wait(strand& activity) noexcept {
        if (activity.waiting != nullptr && activity.waiting->ends_with_context) scheduler_.call(activity, wake::ended);
    }
    void wait_for_end(strand& activity) noexcept {
        wait_record what{.kind = waits_for::activity, .ends_with_context = false};
        while (activity.running) scheduler_.wait(activity.joining, what, deadline::never);
    }

    std::optional<abort_notice> aborted(rank_t self, std::uint64_t context) const {
        const abort_notice* first = find_notice(self, {context, last_tag});
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// Called when every activity waits for another, or when the run is overdue: makes all waits throw `deadlock`.
    void nothing_left() {
        const char* const what = scheduler_.is_overdue() ? "no end after " : "deadlock at ";
        deadlock_ = {.context = every_context,
                     .kind = failure::deadlock,
                     .reason = what + std::to_string(now().ns) + " ns: " + who_waits(scheduler_.strands())};
        for (std::size_t rank = 0; rank < known_.size(); ++rank)
            if (std::find(known_[rank].begin(), known_[rank].end(), &*deadlock_) == known_[rank].end())
                learn(static_cast<rank_t>(rank), *deadlock_);
        if (scheduler_.ready()) return;
        // The waits left are those that no abort ends, as of a sender whose reader itself waits for that sender.
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr) scheduler_.call(each, wake::ended);
    }

  protected:
    bool concluded(wake outcome, const wait_record& what) const {
        if (outcome == wake::ended) throw_if_ended(what.on);
        return outcome == wake::called;
    }

    /// Rethrows the exception that ended the run, if any.
    void rethrow() const {
        if (thrown_ != nullptr) std::rethrow_exception(thrown_);
        if (deadlock_) throw_error(*deadlock_);
    }

    /// The notice that ends a channel on a rank, or null.
    const abort_notice* find_notice(rank_t rank, channel on) const {
        const abort_notice* of_all = nullptr;
        for (const abort_notice* const each : known_[list_of(rank)]) {
            if (is_ignored(rank, *each)) continue;
            if (each->context == on.context && each->ends(on.tag)) return each;
            if (each->context == every_context && of_all == nullptr) of_all = each;
        }
        return of_all;
    }

    /// Ends the waits of a rank, or of all if control is ideal, by a notice that must stay where it is.
    void learn(rank_t rank, const abort_notice& notice) {
        known_[list_of(rank)].push_back(&notice);
        has_notices_ = true;
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr && each.waiting->ends_with_context && list_of(each.rank) == list_of(rank) &&
                !is_ignored(each.rank, notice) &&
                (notice.context == every_context ||
                 (each.waiting->on.context == notice.context && notice.ends(each.waiting->on.tag))))
                scheduler_.call(each, wake::ended);
    }
    /// Whether a rank asks what becomes of others, and goes on without them.
    void set_monitors(rank_t rank, bool does) { monitors_[static_cast<std::size_t>(rank)] = does; }
    /// A failure of another rank, which ends all contexts, ends none of a rank that monitors.
    bool is_ignored(rank_t rank, const abort_notice& notice) const {
        return notice.context == every_context && monitors_[static_cast<std::size_t>(rank)] &&
               (!deadlock_ || &notice != &*deadlock_);
    }
    void forget_notices(rank_t rank) { known_[list_of(rank)].clear(); }
    const std::vector<const abort_notice*>& notices_of(rank_t rank) const { return known_[list_of(rank)]; }

    /// Makes a notice of the exception being handled, in ranks of this world even if its error has ranks of a subgroup.
    abort_notice notice_of_current(rank_t rank) const {
        abort_notice notice = rill::detail::notice_of_thrown(rank, [&](const abort_notice& told) {
            for (const abort_notice* const each : notices_of(rank))
                if (rill::detail::same_failure(*each, told)) return std::optional(*each);
            return std::optional<abort_notice>();
        });
        if (notice.culprit == no_rank && notice.kind != failure::deadlock) notice.culprit = rank;
        return notice;
    }

    /// The exception being handled has left the body of `rank`, where the notice that holds blames `culprit`.
    void remember_thrown(rank_t rank, rank_t culprit) {
        if (thrown_ != nullptr && (culprit_threw_ || culprit != rank)) return;
        thrown_ = std::current_exception();
        culprit_threw_ = culprit == rank;
    }

    scheduler scheduler_;

  private:
    std::size_t list_of(rank_t rank) const { return known_.size() == 1 ? 0 : static_cast<std::size_t>(rank); }

    duration poll_;
    std::vector<bool> monitors_;                           ///< by rank
    std::vector<std::vector<const abort_notice*>> known_;  ///< of each rank; one list for all if control is ideal
    bool has_notices_ = false;
    std::optional<abort_notice> deadlock_;
    wait_list idle_;  ///< activities that only time wakes
    std::exception_ptr thrown_{};
    bool culprit_threw_ = false;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_rooms.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The ranks, and the room in their mailboxes for buffers that are handed over.
class rooms : public control {
  public:
    rooms(int ranks, const network& chosen)
        : control(ranks, chosen), ranks_(static_cast<std::size_t>(ranks)), mailbox_bytes_(chosen.mailbox_bytes) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    traffic counted(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)].counted; }

  protected:
    rank_state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    bool reserve_room(rank_t peer, channel on, std::size_t bytes, deadline until) {
        rank_state& receiver = at(peer);
        if (receiver.calls.is_closed(on.context) || (receiver.posting.empty() && fits(receiver, bytes))) {
            receiver.handed_over += bytes;
            return true;
        }
        if (passed(until)) return poll(), false;
        throw_if_ended(on);
        wait_record what{.kind = waits_for::room, .peers = {&peer, 1}, .on = on, .amount = bytes};
        const wake outcome = scheduler_.wait(receiver.posting, what, until);
        if (outcome != wake::called) offer_room(receiver);  // those that wait behind may need less
        return concluded(outcome, what);
    }

    /// Gives free room to those who wait for it, in order, so that nobody overtakes them.
    void offer_room(rank_state& receiver) noexcept {
        while (strand* next = receiver.posting.first()) {
            if (!fits(receiver, next->waiting->amount)) return;
            admit(receiver, *next);
        }
    }
    void admit(rank_state& receiver, strand& poster) noexcept {
        receiver.handed_over += poster.waiting->amount;
        scheduler_.call(poster);
    }

  private:
    bool fits(const rank_state& receiver, std::size_t bytes) const {
        return receiver.handed_over == 0 ||
               (receiver.handed_over <= mailbox_bytes_ && bytes <= mailbox_bytes_ - receiver.handed_over);
    }

    std::vector<rank_state> ranks_;
    std::size_t mailbox_bytes_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_mail.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The messages between ranks.
class mail : public rooms {
  public:
    mail(int ranks, const network& chosen) : rooms(ranks, chosen), links_(ranks, chosen) {}

    // --- the sender's side and the receiver's

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        parcel& p = offices_.accept(source, at(source).lives, receiver, on);
        p.pieces = pieces;
        p.handed_over = false;
        p.sender_holds = true;
        send(p);
        return p;
    }

    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
        if (!reserve_room(receiver, on, bytes.size(), until)) return false;
        parcel& p = offices_.accept(source, at(source).lives, receiver, on);
        p.owned = std::move(bytes);
        p.pieces = byte_view(p.owned);
        p.handed_over = true;
        p.sender_holds = false;
        send(p);
        return true;
    }

    /// Null when `until` has passed.
    parcel* receive(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on);
        if (parcel* p = offices_.first(self, peers, on)) return &take(*p);
        return await(self, peers, on, until);
    }

    parcel* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on);
        parcel* newest = offices_.first(self, peers, on);
        if (newest == nullptr) return await(self, peers, on, until);
        while (parcel* next = offices_.next(*newest, peers)) drop(*std::exchange(newest, next));
        return &take(*newest);
    }

    /// Called by the receiver when it will not read the message again.
    void release(parcel& p) noexcept {
        p.at = parcel::stage::done;
        scheduler_.call_all(p.reading);
        if (!p.sender_holds) offices_.give_back(p);
    }

    /// Called by the sender to give up a message: withdraws it if nobody has taken it.
    void let_go(parcel& p) noexcept {
        p.sender_holds = false;
        if (p.at == parcel::stage::done || p.at == parcel::stage::lost)
            offices_.give_back(p);
        else if (p.at != parcel::stage::taken)
            drop(p);
    }

    bool wait_until_read(parcel& p, deadline until) {
        if (p.at == parcel::stage::done) return true;
        throw_if_ended(p.on);
        const rank_t reader = p.receiver;
        throw_if_silent(p.source, {&reader, 1}, p.on);
        if (passed(until)) return poll(), p.at == parcel::stage::done;
        wait_record what{.kind = waits_for::reading, .peers = {&reader, 1}, .on = p.on};
        const rank_t self = p.source;
        const wake outcome = scheduler_.wait(p.reading, what, until);
        if (concluded(outcome, what)) return true;
        if (outcome == wake::ended) throw_if_silent(self, what.peers, what.on);
        return false;
    }

    void settle(parcel& p) noexcept {
        if (p.at != parcel::stage::taken) return;
        wait_record what{.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on, .ends_with_context = false};
        scheduler_.wait(p.reading, what, deadline::never);
    }

    /// A number of a rank's life, as `self` knows it.
    std::uint64_t incarnation(rank_t self, rank_t peer) {
        const auto& known = at(self).known;
        return incarnation_of(peer, known.empty() ? at(peer).lives : known[static_cast<std::size_t>(peer)].life);
    }

    void fence(rank_t self, rank_t peer, std::uint64_t incarnation) {
        int life = 1;
        while (life <= at(peer).lives && incarnation_of(peer, life) != incarnation) ++life;
        if (life > at(peer).lives || is_fenced(self, peer, life)) return;
        at(self).fenced.emplace_back(peer, life);
        at(self).mail.for_each([&](parcel& p) {
            if (p.source == peer && p.life == life) drop(p);
        });
        if (at(self).known.empty()) return;
        known_peer& last = at(self).known[static_cast<std::size_t>(peer)];
        if (last.life == life && !last.has_ended) tell_end(self, peer, last);
    }

    // --- appointments

    void arrive(appointment& due) {
        parcel& p = static_cast<parcel&>(due);
        if (p.at == parcel::stage::held) return deliver_held(at(p.receiver));  // nobody has overtaken it
        scheduler_.record(2U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver));
        if (std::exchange(p.queues, false)) {
            const time_point taken = links_.land(now(), p.receiver, p.tail, p.pieces.size_bytes());
            if (taken > now()) return scheduler_.future().add(p, taken);
        }
        if (p.holds.ns > 0 || !at(p.receiver).held.empty()) return hold_or_overtake(p);
        deliver(p);
    }

  protected:
    // --- the way of a message through the network

    /// Loses a message; its sender is not told.
    void lose(parcel& p) noexcept {
        p.at = parcel::stage::lost;
        if (!p.sender_holds) offices_.give_back(p);
    }

    void send(parcel& p) {
        const std::size_t size = p.pieces.size_bytes();
        traffic& counted = at(p.source).counted;
        counted += {.messages_sent = 1, .bytes_sent = size};
        ++messages_;
        bytes_ += size;
        scheduler_.record(3U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver), size);
        at(p.receiver).mail.push_back(p);
        if (at(p.receiver).calls.is_closed(p.on.context) || is_fenced(p.receiver, p.source, p.life))
            drop(p);
        else if (p.source == p.receiver)
            deliver(p);
        else
            transmit(p, size);
    }

    void transmit(parcel& p, std::size_t size) {
        const auto flight = links_.depart(now(), p.source, p.receiver, size);
        const bool is_lost = flight.lost || !at(p.receiver).is_alive;
        if (is_lost) {
            if (!flight.lost) links_.lose(p.source, p.receiver);
            remove(p);
            return lose(p);
        }
        p.tail = flight.tail;
        p.holds = flight.held;
        p.queues = links_.queues_at(p.receiver);
        const time_point arrives = p.queues ? flight.head : flight.tail;
        scheduler_.future().add(p, arrives);
        if (flight.twice) repeat(p, arrives);
    }

    /// Sends a copy of a message, which a fault duplicates.
    void repeat(const parcel& p, time_point arrives) {
        parcel& copy = offices_.accept(p.source, p.life, p.receiver, p.on);
        for (const byte_view piece : p.pieces) copy.owned.append(piece.begin(), piece.end());
        copy.pieces = byte_view(copy.owned);
        copy.handed_over = true;
        copy.sender_holds = false;
        copy.tail = p.tail;
        copy.queues = p.queues;
        at(p.receiver).handed_over += copy.owned.size();
        at(p.receiver).mail.push_back(copy);
        scheduler_.future().add(copy, arrives);
    }

    /// Holds a message back until one of another sender has overtaken it; later messages of its sender stay behind it.
    /// All messages that are held at a receiver are of one sender.
    void hold_or_overtake(parcel& p) {
        rank_state& receiver = at(p.receiver);
        const parcel* const first = receiver.held.first();
        if (first != nullptr && first->source != p.source) {
            deliver(p);
            return deliver_held(receiver);
        }
        if (first != nullptr) p.holds = first->holds;
        p.at = parcel::stage::held;
        receiver.held.push_back(p);
        scheduler_.future().add(p, now() + p.holds);
    }
    void deliver_held(rank_state& receiver) {
        while (parcel* const p = receiver.held.first()) {
            receiver.held.remove(*p);
            p->at = parcel::stage::on_the_way;
            if (p->pending()) scheduler_.future().remove(*p);
            scheduler_.record(5U, static_cast<unsigned>(p->source), static_cast<unsigned>(p->receiver));
            deliver(*p);
        }
    }

    void deliver(parcel& p) {
        if (!at(p.receiver).known.empty() && p.source != p.receiver) learn_life(p.receiver, p.source, p.life, false);
        pass_on(p);
    }
    void pass_on(parcel& p) {
        for (strand* s = at(p.receiver).receiving.first(); s != nullptr; s = wait_list::after(*s)) {
            wait_record& what = *s->waiting;
            if (what.on != p.on || !contains(what.peers, p.source)) continue;
            what.delivered = &take(p);
            scheduler_.call(*s);
            return;
        }
        offices_.store(p);
    }

    /// Removes a message from wherever it is: on its way, held or in the mailbox.
    void remove(parcel& p) noexcept {
        if (p.pending()) scheduler_.future().remove(p);
        if (p.at == parcel::stage::arrived) offices_.remove(p);
        if (p.at == parcel::stage::held) at(p.receiver).held.remove(p);
        rank_state& receiver = at(p.receiver);
        receiver.mail.remove(p);
        if (!p.handed_over) return;
        receiver.handed_over -= p.pieces.size_bytes();
        offer_room(receiver);
    }

    parcel& take(parcel& p) noexcept {
        remove(p);
        p.at = parcel::stage::taken;
        at(p.receiver).counted += {.messages_received = 1, .bytes_received = p.pieces.size_bytes()};
        return p;
    }

    void drop(parcel& p) noexcept {
        remove(p);
        release(p);
    }

    parcel* await(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_in_vain(self, peers, on);
        if (passed(until)) return poll(), nullptr;
        wait_record what{.kind = waits_for::message, .peers = peers, .on = on};
        const wake outcome = scheduler_.wait(at(self).receiving, what, until);
        if (concluded(outcome, what)) return what.delivered;
        if (outcome == wake::ended) throw_if_in_vain(self, peers, on);
        return nullptr;
    }

    // --- what a rank that monitors is told of others

    /// Tells all that has become of a peer up to a life, or up to its end.
    void learn_life(rank_t self, rank_t peer, int life, bool has_ended) {
        if (at(self).known.empty() || is_fenced(self, peer, life)) return;
        known_peer& last = at(self).known[static_cast<std::size_t>(peer)];
        if (last.life < life) {
            if (last.life > 0 && !last.has_ended) tell_end(self, peer, last);
            last = {.life = life};
            for (const channel on : at(self).monitored) tell_change(self, peer, on, peer_change::arrived, life);
        }
        if (last.life != life || last.has_ended) return;
        if (last.is_silent) tell_silence(self, peer, false);
        if (has_ended) tell_end(self, peer, last);
    }

    /// A rank that monitors has heard nothing of a peer for long, or hears of it again.
    void tell_silence(rank_t self, rank_t peer, bool is_silent) {
        known_peer& last = at(self).known[static_cast<std::size_t>(peer)];
        last.is_silent = is_silent;
        for (const channel on : at(self).monitored)
            tell_change(self, peer, on, is_silent ? peer_change::silent : peer_change::recovered, last.life);
        if (!is_silent) return;
        end_receives_in_vain(self);
        for (strand& each : scheduler_.strands()) {
            const wait_record* const what = each.rank == self ? each.waiting : nullptr;
            if (what != nullptr && what->kind == waits_for::reading && what->ends_with_context &&
                waits_for_silent(self, what->peers, what->on))
                scheduler_.call(each, wake::ended);
        }
    }

    void tell_end(rank_t self, rank_t peer, known_peer& last) {
        last.has_ended = true;
        if (!is_fenced(self, peer, last.life))
            for (const channel on : at(self).monitored) tell_change(self, peer, on, peer_change::ended, last.life);
        end_receives_in_vain(self);
    }
    void end_receives_in_vain(rank_t self) {
        at(self).receiving.for_each([&](strand& s) {
            if (waits_in_vain(self, s.waiting->peers, s.waiting->on)) scheduler_.call(s, wake::ended);
        });
    }

    void tell_change(rank_t self, rank_t peer, channel on, peer_change change, int life) {
        parcel& p = offices_.accept(peer, life, self, on);
        p.owned = to_message({.kind = change, .incarnation = incarnation_of(peer, life)});
        p.pieces = byte_view(p.owned);
        p.handed_over = p.sender_holds = false;
        at(self).mail.push_back(p);
        pass_on(p);
    }

    static std::uint64_t incarnation_of(rank_t rank, int life) {
        return life == 0 ? 0 : mix64(static_cast<unsigned>(rank), static_cast<unsigned>(life)) | 1U;
    }

    bool is_fenced(rank_t self, rank_t peer, int life) {
        const auto& fenced = at(self).fenced;
        return !fenced.empty() && std::find(fenced.begin(), fenced.end(), std::pair(peer, life)) != fenced.end();
    }

    bool is_under_way(rank_t source, int life, rank_t receiver) {
        for (const parcel* p = at(receiver).mail.first(); p != nullptr; p = at(receiver).mail.after(*p))
            if (p->source == source && p->life == life && p->at != parcel::stage::arrived) return true;
        return false;
    }

    bool is_open(rank_t self, std::uint64_t context) {
        const auto& monitored = at(self).monitored;
        return std::any_of(monitored.begin(), monitored.end(), [=](channel each) { return each.context == context; });
    }
    /// Whether a rank that monitors waits for peers that have all ended, or are silent, on another channel of a context
    /// that it monitors; or in any other context for peers that have all thrown.
    bool waits_in_vain(rank_t self, std::span<const rank_t> peers, channel on) {
        const rank_state& own = at(self);
        if (own.known.empty() || peers.empty()) return false;
        if (std::find(own.monitored.begin(), own.monitored.end(), on) != own.monitored.end()) return false;
        const bool open = is_open(self, on.context);
        return std::all_of(peers.begin(), peers.end(), [&](rank_t peer) {
            const known_peer& last = own.known[static_cast<std::size_t>(peer)];
            return open ? last.has_ended || last.is_silent : last.has_ended && at(peer).failure;
        });
    }
    /// The same where one of these peers may be heard again.
    bool waits_for_silent(rank_t self, std::span<const rank_t> peers, channel on) {
        return waits_in_vain(self, peers, on) && std::any_of(peers.begin(), peers.end(), [&](rank_t peer) {
                   return !at(self).known[static_cast<std::size_t>(peer)].has_ended;
               });
    }

    void throw_if_silent(rank_t self, std::span<const rank_t> peers, channel on) {
        if (waits_for_silent(self, peers, on)) throw_error(rill::detail::notice_of_silence(self, peers, on));
    }
    void throw_if_in_vain(rank_t self, std::span<const rank_t> peers, channel on) {
        if (!waits_in_vain(self, peers, on)) return;
        throw_if_silent(self, peers, on);
        if (!is_open(self, on.context)) {
            abort_notice notice = *at(peers[0]).failure;
            notice.context = on.context;
            throw_error(notice);
        }
        throw peer_failure({.context = on.context,
                            .culprit = peers[0],
                            .reason = "rank " + std::to_string(self) + " waits for a message from " +
                                      ranks_text(peers) + channel_text(on) + ", which will not come: they have ended"});
    }

    link_table links_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;

  private:
    post_office offices_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_courier.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// A control message, from its first dispatch until it has arrived or is given up.
struct letter : appointment {
    enum class about : std::uint8_t { notice, question, answer, arrival, end, sign };

    letter() : appointment(what::letter) {}

    about kind{};
    rank_t source = no_rank;
    rank_t receiver = no_rank;
    int life = 0;  ///< of its source
    time_point written{};
    const abort_notice* notice = nullptr;
    std::uint64_t context = 0;
    call_signature call{};   ///< of a question: only its number
    int repeated = 0;        ///< how often
    int followed = 0;        ///< how often it has waited for others to arrive first
    bool is_on_way = false;  ///< its appointment is its arrival, otherwise its next dispatch
};

/// The control channel: notices, announced calls and inquiries. It is ideal or travels by letters.
class courier : public mail {
  public:
    courier(int ranks, const network& chosen)
        : mail(ranks, chosen),
          travels_(chosen.control == control_plane::travelling),
          jitter_(chosen.jitter),
          silence_(chosen.silence) {}

    void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        throw_if_killed();
        at(self).calls.announce(context, call);
        answer_questions(self, context);
        wake_inquirers(self, [&](const strand& s) {
            return (!travels_ || s.rank == self) && s.waiting->on.context == context &&
                   s.waiting->amount == call.number;
        });
    }

    std::optional<call_signature> inquire(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number,
                                          deadline until) {
        const channel on{context, tag_of(number)};
        throw_if_ended(on);
        const auto before = passed(until) ? std::nullopt : take_state(self, peer, context, number);
        if (const auto known = answer_at_once(self, peer, context, number)) return known;
        ask(self, peer, context, number);
        wait_record what{.kind = waits_for::announcement, .peers = {&peer, 1}, .on = on, .amount = number};
        if (passed(until))
            poll();
        else
            wait(at(peer).inquiring, what, until);
        const auto said = answer_in_the_end(self, peer, context, number);
        return said ? said : before;
    }

    /// The body of this rank has returned or thrown.
    void depart(rank_t self) {
        at(self).has_departed = true;
        std::vector<std::uint64_t> contexts;
        for (const question& each : at(self).asked) contexts.push_back(each.context);
        for (const std::uint64_t context : contexts) answer_questions(self, context);
        wake_inquirers(self, [&](const strand& s) { return !travels_ || s.rank == self; });
    }

    /// Aborts a context and returns the notice that holds on this rank: the first one of a context that has reached it,
    /// where a notice of all contexts counts for each. A killed rank's notice is ignored.
    abort_notice abort(rank_t self, const abort_notice& notice) {
        if (scheduler_.is_killed()) return notice;
        if (const abort_notice* first = find_notice(self, {notice.context, notice.first_tag})) return *first;
        const issued_notice& own = issued_.emplace_back(issued_notice{notice, self, at(self).lives});
        learn(self, own.notice);
        for (rank_t peer = 0; travels_ && peer < size(); ++peer)
            if (peer != self) tell(self, peer, own.notice);
        return notice;
    }

    /// The exception being handled has left the body of `rank`: aborts all contexts of the ranks that do not monitor.
    void fail(rank_t rank) {
        const abort_notice& own = at(rank).failure.emplace(notice_of_current(rank));
        remember_thrown(rank, abort(rank, own).culprit);
        depart(rank);
    }

    /// A letter arrives, or is sent again.
    void deliver_letter(appointment& due) {
        letter& l = static_cast<letter&>(due);
        if (!l.is_on_way) return dispatch(l);
        if (!at(l.receiver).is_alive) return repeat_later(l);
        if (must_wait(l)) return follow(l);
        scheduler_.record(6U, static_cast<unsigned>(l.source), static_cast<unsigned>(l.receiver));
        const letter read = l;
        lay_down(l);
        if (is_fenced(read.receiver, read.source, read.life)) return;
        learn_life(read.receiver, read.source, read.life, read.kind == letter::about::end);
        switch (read.kind) {
            case letter::about::arrival:
            case letter::about::end:
            case letter::about::sign: return;
            case letter::about::notice: return hear(read.receiver, *read.notice);
            case letter::about::question:
                at(read.receiver).asked.push_back({read.source, read.context, read.call.number});
                return answer_questions(read.receiver, read.context);
            case letter::about::answer: return hear(read.receiver, read.source, read.context, read.call);
        }
    }

    void monitor(rank_t self, channel on) {
        set_monitors(self, true);  // first: an abort of every context that it has heard of does not end it any more
        throw_if_ended(on);
        rank_state& own = at(self);
        own.monitored.push_back(on);
        if (own.known.empty()) {
            for (rank_t peer = 0; peer < size(); ++peer) own.known.push_back({.life = at(peer).lives});
            for (rank_t peer = 0; peer < size(); ++peer)
                if (peer != self && at(peer).lives > 0 && (at(peer).has_ended || !at(peer).is_alive))
                    write_of_life(letter::about::end, peer, self);
            expect_signs(self);
            return;
        }
        for (rank_t peer = 0; peer < size(); ++peer) {
            const known_peer& last = own.known[static_cast<std::size_t>(peer)];
            if (last.has_ended && !is_fenced(self, peer, last.life))
                tell_change(self, peer, on, peer_change::ended, last.life);
        }
    }

  protected:
    /// Sends those who monitor the arrival or the end of a rank; first the notices that it knows, which may be why it
    /// has ended.
    void tell_of_life(letter::about change, rank_t rank) {
        at(rank).has_ended = change == letter::about::end;
        for (rank_t peer = 0; peer < size(); ++peer) {
            if (peer == rank || at(peer).known.empty()) continue;
            if (change == letter::about::end) forward_notices(rank, peer);
            write_of_life(change, rank, peer);
        }
    }

    /// What a rank has asked, said and heard ends with its life.
    void forget_control(rank_t rank) {
        at(rank).calls = {};
        at(rank).monitored.clear();
        set_monitors(rank, false);
        at(rank).known.clear();
        at(rank).fenced.clear();
        if (!travels_) return;
        at(rank).asked.clear();
        forget_notices(rank);
        heard_.erase_if([&](const hearsay_key& key) { return key.reader == rank; });
    }

    /// A rank has begun anew: the others ask it again what they wait to hear, and repeat their notices.
    void catch_up(rank_t rank) {
        if (!travels_) return;
        std::vector<std::pair<hearsay_key, std::vector<std::uint64_t>>> open;
        heard_.for_each([&](const hearsay_key& key, const hearsay& of) {
            if (key.of == rank) open.emplace_back(key, of.asked);
        });
        heard_.erase_if([&](const hearsay_key& key) { return key.of == rank; });
        for (const auto& [key, numbers] : open)
            for (const std::uint64_t number : numbers) ask(key.reader, rank, key.context, number);
        for (const issued_notice& each : issued_)
            if (each.by != rank && at(each.by).is_alive && at(each.by).lives == each.life)
                tell(each.by, rank, each.notice);
    }

    void forget_heard(rank_t self, std::uint64_t context) {
        for (rank_t peer = 0; travels_ && peer < size(); ++peer) heard_.erase({self, peer, context});
    }

  private:
    static constexpr duration least_pause = milliseconds(1), most_pause = seconds(1);
    static constexpr int most_repeats = 70;

    struct issued_notice {
        abort_notice notice;
        rank_t by;
        int life;
    };
    struct hearsay_key {
        rank_t reader = no_rank;
        rank_t of = no_rank;
        std::uint64_t context = 0;

        std::size_t hash() const { return mix64(static_cast<unsigned>(reader), static_cast<unsigned>(of), context); }
        friend bool operator==(const hearsay_key&, const hearsay_key&) = default;
    };
    struct letter_way {
        rank_t source = no_rank;
        int life = 0;  ///< of the source
        rank_t receiver = no_rank;

        std::size_t hash() const {
            return mix64(static_cast<unsigned>(source), static_cast<unsigned>(life), static_cast<unsigned>(receiver));
        }
        friend bool operator==(const letter_way&, const letter_way&) = default;
    };
    static letter_way way_of(const letter& l) { return {l.source, l.life, l.receiver}; }

    /// What a rank has heard from another about a context.
    struct hearsay {
        rill::detail::call_history calls{};
        bool has_departed = false;
        std::vector<std::uint64_t> asked{};  ///< the numbers of open questions
    };

    static call_signature departure_of(std::uint64_t number) {
        return {.number = number, .kind = operation::departure};
    }

    // --- inquiries

    /// The state that was heard of, and is asked for anew.
    std::optional<call_signature> take_state(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number) {
        hearsay* const known = heard_.find({self, peer, context});
        return known == nullptr ? std::nullopt : known->calls.take_state(number);
    }
    /// What needs no wait.
    std::optional<call_signature> answer_at_once(rank_t self, rank_t peer, std::uint64_t context,
                                                 std::uint64_t number) {
        if (!travels_ || self == peer) {
            if (const auto entered = at(peer).calls.entered(context, number)) return entered;
            return at(peer).has_departed ? answer_in_the_end(self, peer, context, number) : std::nullopt;
        }
        const hearsay* const known = heard_.find({self, peer, context});
        if (known == nullptr) return std::nullopt;
        if (const auto entered = known->calls.entered(number)) return entered;
        return known->has_departed ? answer_in_the_end(self, peer, context, number) : std::nullopt;
    }
    /// What is known when the wait is over.
    std::optional<call_signature> answer_in_the_end(rank_t self, rank_t peer, std::uint64_t context,
                                                    std::uint64_t number) {
        const bool is_direct = !travels_ || self == peer;
        const hearsay* const known = is_direct ? nullptr : heard_.find({self, peer, context});
        if (!is_direct && known == nullptr) return std::nullopt;
        const auto entered =
            is_direct ? at(peer).calls.entered_or_later(context, number) : known->calls.entered_or_later(number);
        const bool has_departed = is_direct ? at(peer).has_departed : known->has_departed;
        return entered || !has_departed ? entered : departure_of(number);
    }

    void ask(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number) {
        if (!travels_ || self == peer) return;
        std::vector<std::uint64_t>& asked = heard_[{self, peer, context}].asked;
        if (std::find(asked.begin(), asked.end(), number) != asked.end()) return;
        asked.push_back(number);
        letter& l = write(letter::about::question, self, peer);
        l.context = context;
        l.call.number = number;
        dispatch(l);
    }

    /// Tells those who have asked what this rank has entered by now: the call in question, or a later one meanwhile, or
    /// that neither will ever be; or the notice that has ended the call here. A failure of this rank itself does not
    /// end those that monitor: they get an answer.
    void answer_questions(rank_t self, std::uint64_t context) {
        std::erase_if(at(self).asked, [&](const question& asked) {
            if (asked.context != context) return false;
            const abort_notice* const known = find_notice(self, {context, tag_of(asked.number)});
            if (known != nullptr && !at(self).failure) {
                tell(self, asked.by, *known);
                return true;
            }
            auto entered = at(self).calls.entered_or_later(context, asked.number);
            if (!entered && at(self).has_departed) {
                forward_notices(self, asked.by);
                entered = departure_of(asked.number);
            }
            if (!entered) return false;
            letter& l = write(letter::about::answer, self, asked.by);
            l.context = context;
            l.call = *entered;
            dispatch(l);
            return entered->number == asked.number;
        });
    }

    void hear(rank_t self, rank_t peer, std::uint64_t context, const call_signature& said) {
        if (at(self).calls.is_closed(context)) return;
        hearsay& known = heard_[{self, peer, context}];
        std::erase(known.asked, said.number);
        if (said.kind == operation::departure)
            known.has_departed = true;
        else
            known.calls.announce(said);
        wake_inquirers(peer, [&](const strand& s) {
            return s.rank == self && s.waiting->on.context == context &&
                   (known.has_departed || s.waiting->amount == said.number);
        });
    }

    template <class Concerned>
    void wake_inquirers(rank_t peer, Concerned&& concerned) {
        at(peer).inquiring.for_each([&](strand& s) {
            if (concerned(s)) scheduler_.call(s);
        });
    }

    // --- letters

    void hear(rank_t self, const abort_notice& notice) {
        if (is_ignored(self, notice)) return;
        if (find_notice(self, {notice.context, notice.first_tag}) == nullptr) learn(self, notice);
    }

    void tell(rank_t self, rank_t peer, const abort_notice& notice) {
        letter& l = write(letter::about::notice, self, peer);
        l.notice = &notice;
        dispatch(l);
    }

    letter& write(letter::about kind, rank_t source, rank_t receiver) {
        if (unused_.empty()) unused_.push_back(&letters_.emplace_back());
        letter& l = *unused_.back();
        unused_.pop_back();
        l.kind = kind;
        l.source = source;
        l.receiver = receiver;
        l.life = at(source).lives;
        l.written = now();
        l.repeated = l.followed = 0;
        if (kind == letter::about::notice) ++open_notices_[way_of(l)];
        return l;
    }

    void write_of_life(letter::about change, rank_t of, rank_t reader) { dispatch(write(change, of, reader)); }

    /// Whenever a link to this rank is cut, the other end gives a sign of life, so that its silence is noticed.
    void expect_signs(rank_t self) {
        if (!travels_) return;
        for (const fault& each : links_.faults().plan().faults) {
            if (each.kind != fault::what::cut) continue;
            for (rank_t peer = 0; peer < size(); ++peer) {
                if (peer == self || !each.is_of_link(peer, self)) continue;
                letter& l = write(letter::about::sign, peer, self);
                l.is_on_way = false;
                scheduler_.future().add(l, std::max(now(), time_point{} + each.begins));
            }
        }
    }

    /// Others than a rank itself tell its end: its host, or those who hear its connections break.
    void dispatch(letter& l) {
        if (l.kind == letter::about::sign && l.repeated == 0) l.life = at(l.source).lives, l.written = now();
        if (l.kind != letter::about::end && (!at(l.source).is_alive || at(l.source).lives != l.life)) return give_up(l);
        const auto arrival = travels_ ? links_.depart_letter(now(), l.source, l.receiver) : std::optional(now());
        if (!arrival) return repeat_later(l);
        l.is_on_way = true;
        scheduler_.future().add(l, *arrival);
    }

    /// Tells `peer` the notices that `self` knows: whoever hears that a rank has gone also hears why.
    void forward_notices(rank_t self, rank_t peer) {
        if (!travels_) return;
        for (const abort_notice* const each : notices_of(self)) tell(self, peer, *each);
    }
    /// Whether a letter that says that a rank has gone would overtake what else it has sent to that receiver.
    bool must_wait(const letter& l) {
        const bool is_end = l.kind == letter::about::end;
        if (is_end && is_under_way(l.source, l.life, l.receiver)) return true;
        if (!is_end && !(l.kind == letter::about::answer && l.call.kind == operation::departure)) return false;
        return open_notices_.find(way_of(l)) != nullptr;
    }

    /// Until then it waits.
    void follow(letter& l) {
        const duration pause = microseconds(std::int64_t{1} << std::min(l.followed++, 20));
        scheduler_.future().add(l, now() + pause);
    }

    void repeat_later(letter& l) {
        if (l.repeated == most_repeats || is_gone_for_good(l.receiver)) return give_up(l);
        if (now() - l.written >= silence_) notice_silence(l);
        const duration first = std::max(least_pause, (links_.latency(l.source, l.receiver) + jitter_) * 4);
        const duration pause = first * (std::int64_t{1} << std::min(l.repeated++, 10));
        l.is_on_way = false;
        scheduler_.future().add(l, now() + std::min(pause, std::max(first, most_pause)));
    }

    /// What `l.source` sends has not arrived for long.
    void notice_silence(const letter& l) {
        const rank_state& receiver = at(l.receiver);
        if (!receiver.is_alive || receiver.known.empty() || is_fenced(l.receiver, l.source, l.life)) return;
        const known_peer& last = receiver.known[static_cast<std::size_t>(l.source)];
        if (last.life == l.life && !last.has_ended && !last.is_silent) tell_silence(l.receiver, l.source, true);
    }

    void give_up(letter& l) {
        if (l.kind == letter::about::question)
            if (hearsay* const known = heard_.find({l.source, l.receiver, l.context}))
                std::erase(known->asked, l.call.number);
        lay_down(l);
    }

    void lay_down(letter& l) {
        if (l.kind == letter::about::notice && --open_notices_[way_of(l)] == 0) open_notices_.erase(way_of(l));
        unused_.push_back(&l);
    }

    bool is_gone_for_good(rank_t rank) {
        const rank_state& of = at(rank);
        return !of.is_alive && !of.begins_anew && (of.next_fault == nullptr || !of.next_fault->pending());
    }

    bool travels_;
    duration jitter_;
    duration silence_;
    std::deque<issued_notice> issued_;  ///< known to ranks by their addresses
    std::deque<letter> letters_;
    table<letter_way, int> open_notices_;  ///< how many letters are notices, and open; no entry for none
    std::vector<letter*> unused_;
    table<hearsay_key, hearsay> heard_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_world.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// The shared state of the ranks: their mail, the calls that they have entered, and their lives.
class world : public courier {
  public:
    world(int ranks, const network& chosen)
        : courier(std::max(ranks, chosen.seats), chosen), starting_(ranks), computing_(chosen.computing) {}

    int restarts(rank_t rank) { return at(rank).lives - 1; }

    // --- messages

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        die_if_due(source);
        return mail::post(source, receiver, on, pieces);
    }
    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
        die_if_due(source);
        return mail::post(source, receiver, on, std::move(bytes), until);
    }

    // --- control

    std::uint64_t next_context(rank_t self, std::uint64_t key) { return at(self).calls.next_context(key); }

    void close(rank_t self, std::uint64_t context) {
        if (scheduler_.is_killed()) return;
        at(self).calls.close(context);
        forget_heard(self, context);
        std::erase_if(at(self).monitored, [&](channel each) { return each.context == context; });
        at(self).mail.for_each([&](parcel& p) {
            if (p.on.context == context) drop(p);
        });
        at(self).posting.for_each([&](strand& s) {
            if (s.waiting->on.context == context) admit(at(self), s);  // their messages are dropped
        });
    }

    // --- the run

    /// Calls `main(self)` as each rank, and again when a rank is restarted.
    report run(strand::job main) {
        main_ = main;
        for (rank_t rank = 0; rank < size(); ++rank) take_seat(rank);
        scheduler_.run(*this);
        rethrow();
        report all{.elapsed = now() - time_point{},
                   .events = scheduler_.events(),
                   .messages = messages_,
                   .bytes = bytes_,
                   .trace_hash = scheduler_.trace(),
                   .links = links_.report()};
        for (rank_t rank = 0; rank < size(); ++rank)
            all.ranks.push_back({.computing = at(rank).computing,
                                 .waiting = scheduler_.waited(rank),
                                 .ended = at(rank).ended - time_point{},
                                 .lives = at(rank).lives});
        return all;
    }
    /// Called when the body of a rank has ended, by itself or because the rank was killed.
    void ended(rank_t rank) {
        rank_state& own = at(rank);
        if (own.is_alive) own.ended = now();
        if (own.is_alive) tell_of_life(letter::about::end, rank);
        if (std::exchange(own.begins_anew, false)) schedule(rank, now());
    }

    void compute(rank_t self, double work) {
        throw_if_ended({every_context});
        RILL_EXPECTS(work >= 0, "simulated: the work of a computation must not be negative");
        if (!computing_) return;
        rank_state& own = at(self);
        const auto& faults = links_.faults();
        const double factor = faults.is_idle() ? 1 : faults.slowness(self, now() - time_point{}, own.posted);
        duration time = computing_(self, own.computations++, work);
        if (factor != 1) time = rill::detail::duration_of(time.seconds() * factor);
        const time_point start = now();
        sleep_until(start + time);
        own.computing = own.computing + (now() - start);
    }

    /// Carries out the planned end of a rank, or its restart.
    void fail_by_plan(appointment& due) {
        const rank_t rank = static_cast<turning_point&>(due).rank;
        scheduler_.record(4U, static_cast<unsigned>(rank));
        rank_state& own = at(rank);
        if (own.is_alive) {
            if (own.main->running) end_life(rank);  // otherwise its body has returned before
            return;
        }
        if (own.main != nullptr &&
            own.main->running) {  // its last life still waits for a peer that reads from its memory
            own.begins_anew = true;
            return;
        }
        if (own.main != nullptr) scheduler_.reuse(*own.main);
        begin_life(rank);
        catch_up(rank);
        scheduler_.expects_one_less();
    }

  private:
    // --- life and death of a rank

    void begin_life(rank_t rank) {
        rank_state& own = at(rank);
        own.is_alive = true;
        own.posted = 0;
        ++own.lives;
        own.main = &scheduler_.start(rank, main_);
        const fault* const end = links_.faults().end_of(rank, life(rank));
        if (end != nullptr && end->skipped == 0) schedule(rank, std::max(now(), time_point{} + end->begins));
        tell_of_life(letter::about::arrival, rank);
    }

    /// Begins at once, when the plan says so, or never.
    void take_seat(rank_t rank) {
        if (const fault* const later = links_.faults().start_of(rank)) {
            schedule(rank, time_point{} + later->begins);
            scheduler_.expects_one_more();
        } else if (rank < starting_) {
            begin_life(rank);
        }
    }

    std::uint64_t life(rank_t rank) { return static_cast<std::uint64_t>(at(rank).lives - 1); }

    void schedule(rank_t rank, time_point when) {
        auto& planned = at(rank).next_fault;
        if (planned == nullptr) planned = std::make_unique<turning_point>();
        planned->rank = rank;
        scheduler_.future().add(*planned, when);
    }

    /// Counts this rank's next post and ends the rank before it where the plan says so.
    void die_if_due(rank_t self) {
        throw_if_killed();
        rank_state& own = at(self);
        ++own.posted;
        if (links_.faults().is_idle()) return;
        const fault* const end = links_.faults().end_of(self, life(self));
        if (end == nullptr || end->skipped == 0 || !end->has_begun(now() - time_point{}, own.posted)) return;
        end_life(self);
        throw_if_killed();
    }

    void end_life(rank_t rank) {
        rank_state& own = at(rank);
        own.is_alive = false;
        own.ended = now();
        forget_control(rank);
        for (strand& each : scheduler_.strands())
            if (each.running && each.rank == rank) {
                each.killed = true;
                end_wait(each);
            }
        tell_of_life(letter::about::end, rank);
        while (parcel* const p = own.mail.first()) {
            if (p->at != parcel::stage::arrived) links_.lose(p->source, rank);
            remove(*p);
            lose(*p);
        }
        if (const fault* const again = links_.faults().restart_after(rank, life(rank))) {
            schedule(rank, now() + again->begins);
            scheduler_.expects_one_more();
        }
    }

    int starting_;
    compute_model computing_;
    strand::job main_{};
};

}}}  // namespace rill::RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_activity.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// A fiber of one rank. `join()` waits for its end and rethrows its exception. The destructor joins and discards the
/// exception; if it runs during unwinding, the activity's waits throw `peer_failure`, so that it ends.
class activity {
  public:
    activity(activity&& other) noexcept
        : world_(other.world_), strand_(std::exchange(other.strand_, nullptr)), unwinding_(other.unwinding_) {}
    activity& operator=(activity&& other) noexcept {
        activity moved(std::move(other));
        std::swap(world_, moved.world_);
        std::swap(strand_, moved.strand_);
        std::swap(unwinding_, moved.unwinding_);
        return *this;
    }
    ~activity() {
        if (strand_ == nullptr) return;
        if (std::uncaught_exceptions() > unwinding_) world_->stop(*strand_);
        finish();
    }

    void join() {
        if (strand_ == nullptr) return;
        if (const std::exception_ptr thrown = finish()) std::rethrow_exception(thrown);
    }

  private:
    friend class endpoint;

    /// Moves `body` to the new fiber's own stack before it returns.
    template <class Body>
    activity(detail::world& world, rank_t rank, Body& body) : world_(&world) {
        struct start {
            detail::scheduler* activities;
            Body* body;
        } own{&world.activities(), &body};
        const auto run_one = [](void* context, detail::strand& self) {
            try {
                detail::scheduler& activities = *static_cast<start*>(context)->activities;
                Body moved(std::move(*static_cast<start*>(context)->body));
                activities.pass();
                moved();
            } catch (...) {
                self.thrown = std::current_exception();
            }
        };
        strand_ = &world.activities().start_now(rank, {run_one, &own});
    }

    std::exception_ptr finish() noexcept {
        detail::strand& ended = *std::exchange(strand_, nullptr);
        world_->wait_for_end(ended);
        std::exception_ptr thrown = std::exchange(ended.thrown, nullptr);
        world_->activities().reuse(ended);
        return thrown;
    }

    detail::world* world_;
    detail::strand* strand_ = nullptr;
    int unwinding_ = std::uncaught_exceptions();
};

}}}  // namespace rill::RILL_ABI::simulated

// ===== rill/transport/detail/simulated_meeting.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated {

class endpoint;

/// A flag that activities of one rank wait for. Its waits belong to no context: only an abort of all contexts ends
/// them. What is there already is given also after that.
class event {
  public:
    explicit event(endpoint& net);
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    void set() {
        set_ = true;
        world_->activities().call_all(waiting_);
    }
    void reset() { set_ = false; }
    /// False when `until` has passed.
    bool wait(deadline until) {
        if (set_) return true;
        world_->throw_if_ended({every_context});
        if (world_->passed(until)) return world_->poll(), set_;
        return world_->wait(waiting_, {.kind = detail::waits_for::event}, until);
    }

  private:
    detail::world* world_;
    detail::wait_list waiting_;
    bool set_ = false;
};

/// Passes values between activities of one rank, first in, first out; unbounded. Its waits belong to no context: see
/// `event`.
template <class T>
class queue {
  public:
    template <class Net>
    explicit queue(Net& net) : world_(net.world_) {}
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;

    void push(T value) {
        RILL_EXPECTS(!closed_, "simulated: push to a closed queue");
        values_.push_back(std::move(value));
        if (detail::strand* first = waiting_.first()) world_->activities().call(*first);
    }
    /// Empty when `until` has passed, or when the queue is closed and all its values have been taken.
    std::optional<T> pop(deadline until) {
        while (taken_ == values_.size()) {
            if (closed_) return std::nullopt;
            world_->throw_if_ended({every_context});
            if (world_->passed(until)) return world_->poll(), std::nullopt;
            if (!world_->wait(waiting_, {.kind = detail::waits_for::queue}, until)) return std::nullopt;
        }
        std::optional<T> value(std::move(values_[taken_++]));
        if (2 * taken_ >= values_.size()) {
            values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
            taken_ = 0;
        }
        return value;
    }
    /// Ends all present and future waits in `pop` once the values have been taken.
    void close() {
        closed_ = true;
        world_->activities().call_all(waiting_);
    }

  private:
    detail::world* world_;
    detail::wait_list waiting_;
    std::vector<T> values_;
    std::size_t taken_ = 0;  ///< leading values that have been taken
    bool closed_ = false;
};

}}}  // namespace rill::RILL_ABI::simulated

// ===== rill/transport/detail/simulated_message.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// A received message, in the memory of its sender until it is destroyed.
using message = rill::detail::received_message<detail::world*, detail::parcel>;

/// A borrowed send in progress; it is done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;
    sending(detail::world& world, detail::parcel& posted) : parcel_(&posted, {&world}) {}

    bool done() noexcept {
        if (!is_done()) world().poll();
        return is_done();
    }

    /// True when done, false when `until` has passed; throws the failure that ended the context.
    bool wait(deadline until) { return parcel_ == nullptr || world().wait_until_read(*parcel_, until); }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    void settle() noexcept {
        if (parcel_ == nullptr) return;
        world().settle(*parcel_);
        parcel_.reset();
    }

  private:
    struct forgetter {
        detail::world* of;
        void operator()(detail::parcel* posted) const noexcept { of->let_go(*posted); }
    };

    detail::world& world() const { return *parcel_.get_deleter().of; }
    bool is_done() const { return parcel_ == nullptr || parcel_->at == detail::parcel::stage::done; }

    std::unique_ptr<detail::parcel, forgetter> parcel_;
};

}}}  // namespace rill::RILL_ABI::simulated

// ===== rill/transport/simulated.hpp

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// One rank in a simulated network. Models `ConcurrentTransport` and
/// `MonitoredTransport`; activities are fibers, all on one thread.
///
/// The clock is virtual: the program's own computation takes no time except by `compute`, messages take the time that
/// the network says, and a poll that finds nothing takes `network::poll`. Messages to oneself, the release of a
/// borrowed message and room in a mailbox take effect at once. The control channel (abort, announce, inquire) travels
/// over the links, unless `network::control` says that it is ideal. A receiver reads a borrowed message in the sender's
/// memory; a buffer that is handed over is moved. Posts and receives allocate only while more messages are under way
/// than ever before. No message or sending may outlive its `run`. A rank must not use a context again that it has
/// closed.
class endpoint : public rill::detail::world_endpoint<detail::world, message, sending> {
  public:
    using activity = simulated::activity;
    using event = simulated::event;
    template <class T>
    using queue = simulated::queue<T>;

    endpoint(detail::world& world, rank_t rank) : world_endpoint(world, rank) {}

    time_point now() const { return world_->now(); }
    void sleep_until(time_point instant) { world_->sleep_until(instant); }
    /// Lets the time pass that `network::computing` gives for `work` units.
    void compute(double work) { world_->compute(rank_, work); }
    /// How often this rank has been killed and begun anew.
    int restarts() const { return world_->restarts(rank_); }

    /// Identifies the calling activity among those of its rank.
    const void* this_activity() const { return &world_->current(); }

    template <class Body>
    activity spawn(Body body) {
        return {*world_, rank_, body};
    }

  private:
    friend class simulated::event;
    template <class T>
    friend class simulated::queue;
};

inline event::event(endpoint& net) : world_(net.world_) {}

static_assert(ConcurrentTransport<endpoint>);
static_assert(ComputingTransport<endpoint>);
static_assert(MonitoredTransport<endpoint>);

namespace detail {
[[gnu::noinline]] inline report run_ranks(int ranks, const network& links, function_ref<void(endpoint&)> body) {
    RILL_EXPECTS(ranks >= 1, "simulated::run: needs at least one rank");
    RILL_EXPECTS(links.latency.ns >= 0 && links.jitter.ns >= 0 && links.poll.ns > 0,
                 "simulated::run: latency and jitter must not be negative, poll must be positive");
    struct start {
        detail::world shared;
        function_ref<void(endpoint&)> body;
    } all{.shared = detail::world(ranks, links), .body = body};
    const auto run_one = [](void* context, detail::strand& self) {
        start& of = *static_cast<start*>(context);
        try {
            endpoint net(of.shared, self.rank);
            of.body(net);
            of.shared.depart(self.rank);
        } catch (const rank_killed&) {
            // The other ranks are not told.
        } catch (...) {
            of.shared.fail(self.rank);
        }
        of.shared.ended(self.rank);
    };
    return all.shared.run({run_one, &all});
}
}  // namespace detail

/// Calls `body(endpoint&)` as each of `ranks` ranks, in virtual time and on the calling thread, and returns when all
/// have ended. Deterministic: equal bodies with an equal network make equal runs, bit for bit.
///
/// A rank that `network::faults` kills ends by `rank_killed`, thrown from its waits and calls; the other ranks are not
/// told. Its borrowed messages that nobody has taken are withdrawn, and messages on their way to it are lost. When it
/// is restarted, `body` is called again.
///
/// An exception that leaves a body aborts every context: that rank is the culprit, and the exception's text is the
/// reason. The waits of all other ranks then throw, and `run` rethrows the culprit's own exception. Ranks that monitor
/// (`MonitoredTransport`) are told that the rank has ended, and go on; `run` rethrows when all have ended. When all
/// ranks wait and nothing can happen any more, all waits and `run` throw `deadlock`, which says who waits for whom.
template <class Body>
report run(int ranks, const network& links, Body&& body) {
    return detail::run_ranks(ranks, links, [&body](endpoint& net) { body(net); });  // it may be a function
}

}}}  // namespace rill::RILL_ABI::simulated

#endif  // RILL_SINGLE_TRANSPORT_SIMULATED_HPP
