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
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_COPY_ACROSS_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_COPY_ACROSS_HPP

// ===== rill/transport/detail/copy_across.hpp

namespace rill::inline RILL_ABI::detail {

/// Writes the pieces into the targets, one after the other, from byte `skipped` of the targets on. There is room.
inline void copy_across(const byte_pieces& pieces, std::span<const byte_span> targets, std::size_t skipped = 0) {
    auto target = targets.begin();
    std::size_t written = skipped;
    for (byte_view piece : pieces)
        while (!piece.empty()) {
            while (written >= target->size()) {
                written -= target->size();
                ++target;
            }
            const std::size_t count = std::min(piece.size(), target->size() - written);
            std::memcpy(target->data() + written, piece.data(), count);
            piece = piece.subspan(count);
            written += count;
        }
}

/// `receive_into` of a message that is here: throws `protocol_error` where the sizes differ.
template <class Message>
void copy_message(rank_t self, const Message& from, channel on, std::span<const byte_span> targets) {
    std::size_t room = 0;
    for (const byte_span target : targets) room += target.size();
    const byte_pieces pieces = from.pieces();
    if (room != pieces.size_bytes())
        throw protocol_error("rank " + std::to_string(self) + " expects " + std::to_string(room) + " bytes from rank " +
                             std::to_string(from.source()) + " (context " + std::to_string(on.context) + ", tag " +
                             std::to_string(on.tag) + "), which sent " + std::to_string(pieces.size_bytes()));
    copy_across(pieces, targets);
}

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_COPY_ACROSS_HPP

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_STACK_SWITCH_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_STACK_SWITCH_HPP

// ===== rill/transport/detail/stack_switch.hpp

// What a switch of fibers must keep, whoever switches: the state of exceptions being handled, and the sanitizers' idea
// of the stack.

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
#define RILL_DETAIL_SWITCHES __attribute__((no_sanitize("thread")))
#else
#define RILL_DETAIL_SWITCHES
#endif

namespace rill::inline RILL_ABI::detail {

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

/// Tells the address sanitizer which stack is in use.
class stack_annotation {
  public:
#ifdef RILL_DETAIL_ASAN
    void leave_for(const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(&fake_, bottom, size); }
    void leave_for_ever(const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(nullptr, bottom, size); }
    void arrive(const void** bottom, std::size_t* size) { __sanitizer_finish_switch_fiber(fake_, bottom, size); }
    /// Frames that never returned have left their marks: whoever gets the memory next must not trip over them.
    static void forget(const void* bottom, std::size_t size) { __asan_unpoison_memory_region(bottom, size); }

  private:
    void* fake_ = nullptr;
#else
    void leave_for(const void*, std::size_t) {}
    void leave_for_ever(const void*, std::size_t) {}
    void arrive(const void**, std::size_t*) {}
    static void forget(const void*, std::size_t) {}
#endif
};

/// Tells the thread sanitizer which fiber runs. It keeps a call stack of its own for each: no function that switches
/// may be instrumented, or it would enter one and leave the other.
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

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_STACK_SWITCH_HPP

// ===== rill/transport/detail/fiber.hpp

// Fibers on Boost.Context.

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

namespace rill::inline RILL_ABI::detail {

/// A function with a stack of its own, behind a guard page. It must have returned before its fiber is destroyed:
/// nothing unwinds a suspended one.
///
/// On Boost.Context's switch alone, below `boost::context::fiber`: that one unwinds by an exception which no
/// `catch (...)` may swallow, and its wrappers would be instrumented.
class fiber {
  public:
    fiber(std::size_t stack_bytes, void (*body)(void*), void* argument)
        : stacks_(stack_bytes),
          stack_(stacks_.allocate()),
          body_(body),
          argument_(argument),
          context_(boost::context::detail::make_fcontext(stack_.sp, stack_.size, &fiber::start)) {}
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;
    ~fiber() {
        stack_annotation::forget(bottom(), stack_.size);
        stacks_.deallocate(stack_);
    }

    /// Runs it until it suspends or returns.
    RILL_DETAIL_SWITCHES void resume() {
        exceptions_ = exception_state::exchange(exceptions_);
        stack_annotation host;
        host.leave_for(bottom(), stack_.size);
        race_.enter();
        context_ = boost::context::detail::jump_fcontext(context_, this).fctx;
        host.arrive(nullptr, nullptr);
        exceptions_ = exception_state::exchange(exceptions_);
    }

    /// Called by its own body: back to who resumed it.
    RILL_DETAIL_SWITCHES void suspend() {
        own_.leave_for(host_bottom_, host_size_);
        race_.leave();
        host_ = boost::context::detail::jump_fcontext(host_, nullptr).fctx;
        own_.arrive(&host_bottom_, &host_size_);
    }

  private:
    const void* bottom() const { return static_cast<const char*>(stack_.sp) - stack_.size; }

    RILL_DETAIL_SWITCHES static void start(boost::context::detail::transfer_t from) noexcept {
        fiber& own = *static_cast<fiber*>(from.data);
        own.host_ = from.fctx;
        own.own_.arrive(&own.host_bottom_, &own.host_size_);
        own.body_(own.argument_);
        own.own_.leave_for_ever(own.host_bottom_, own.host_size_);
        own.race_.leave();
        boost::context::detail::jump_fcontext(own.host_, nullptr);
    }

    boost::context::protected_fixedsize_stack stacks_;
    boost::context::stack_context stack_;
    void (*body_)(void*);
    void* argument_;
    boost::context::detail::fcontext_t context_;
    boost::context::detail::fcontext_t host_ = nullptr;
    exception_state exceptions_{};
    stack_annotation own_{};
    race_annotation race_{};
    const void* host_bottom_ = nullptr;
    std::size_t host_size_ = 0;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/transport/detail/simulated_agenda.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// Something that happens at an instant. It is part of what it happens to.
struct appointment {
    enum class what : std::uint8_t { expiry, arrival };
    static constexpr std::size_t nowhere = ~std::size_t{0};

    explicit appointment(what happens) : kind(happens) {}

    what kind;
    std::size_t place = nowhere;  ///< in the agenda's heap

    bool pending() const { return place != nowhere; }
};

/// The future, in the order (time, sequence). Adding, removing and taking cost O(log n).
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

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_scheduler.hpp

namespace rill::inline RILL_ABI::simulated::detail {

struct parcel;
class strand;

enum class waits_for : std::uint8_t { message, room, reading, announcement, event, queue, activity, time };

/// What an activity waits for, and what comes of it. Lives on the stack of who waits.
struct wait_record {
    waits_for kind{};
    std::span<const rank_t> peers{};
    channel on{.context = every_context};
    std::uint64_t amount = 0;       ///< bytes for which room is needed; number of the call
    bool ends_with_context = true;  ///< false: only what it waits for can end it
    parcel* delivered = nullptr;
};

enum class wake : std::uint8_t { called, expired, ended };

/// Who waits for the same thing, first come, first served.
class wait_list {
  public:
    strand* first() const { return first_; }
    bool empty() const { return first_ == nullptr; }
    void push_back(strand& s) noexcept;
    void push_front(strand& s) noexcept;
    void remove(strand& s) noexcept;

  private:
    strand* first_ = nullptr;
    strand* last_ = nullptr;
};

/// One activity of a rank: a fiber, run again and again with new jobs.
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
    wait_list joining;            ///< who waits for its end
    std::exception_ptr thrown{};  ///< what ended it

    wait_record* waiting = nullptr;
    wait_list* among = nullptr;  ///< where it waits
    strand *before = nullptr, *after = nullptr;
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

inline void wait_list::push_back(strand& s) noexcept {
    s.among = this;
    s.before = last_;
    s.after = nullptr;
    (last_ == nullptr ? first_ : last_->after) = &s;
    last_ = &s;
}

inline void wait_list::push_front(strand& s) noexcept {
    s.among = this;
    s.before = nullptr;
    s.after = first_;
    (first_ == nullptr ? last_ : first_->before) = &s;
    first_ = &s;
}

inline void wait_list::remove(strand& s) noexcept {
    (s.before == nullptr ? first_ : s.before->after) = s.after;
    (s.after == nullptr ? last_ : s.after->before) = s.before;
    s.among = nullptr;
}

/// Runs the activities one at a time and moves the clock when none can go on.
class scheduler {
  public:
    explicit scheduler(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {}
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
    std::uint64_t trace() const { return trace_; }

    template <class... Parts>
    void record(Parts... parts) {
        trace_ = mix64(trace_, static_cast<std::uint64_t>(now_.ns), static_cast<std::uint64_t>(parts)...);
    }

    /// The strand runs when it is its turn.
    strand& start(rank_t rank, strand::job job) {
        strand& started = unused();
        started.rank = rank;
        started.next = job;
        started.running = true;
        started.stopped = false;
        ++live_;
        ready_.push_back(started);
        return started;
    }
    /// Runs it at once, up to its first `pass` or wait, before the caller goes on.
    strand& start_now(rank_t rank, strand::job job) {
        strand& started = start(rank, job);
        ready_.remove(started);
        ready_.push_front(*current_);
        ready_.push_front(started);
        current_->thread.suspend();
        return started;
    }
    void reuse(strand& ended) noexcept { idle_.push_back(ended); }

    /// Lets the others that are ready go on first.
    void pass() {
        ready_.push_back(*current_);
        current_->thread.suspend();
    }

    /// Suspends the current strand until it is called, or `until` has passed, or its context ends.
    wake wait(wait_list& where, wait_record& what, deadline until) {
        strand& own = *current_;
        if (!until.is_never()) future_.add(own, until.at);
        own.waiting = &what;
        where.push_back(own);
        own.thread.suspend();
        return own.outcome;
    }

    void call(strand& waiting, wake outcome = wake::called) noexcept {
        waiting.among->remove(waiting);
        if (waiting.pending()) future_.remove(waiting);
        waiting.waiting = nullptr;
        waiting.outcome = outcome;
        ready_.push_back(waiting);
    }
    void call_all(wait_list& waiting) noexcept {
        while (!waiting.empty()) call(*waiting.first());
    }

    /// Until every strand has ended. `world.arrive(appointment&)` takes what arrives, `world.nothing_left()` must make
    /// a strand ready.
    template <class World>
    void run(World& world) noexcept {
        while (live_ > 0) {
            if (strand* next = ready_.first())
                resume(*next);
            else if (future_.empty())
                world.nothing_left();
            else
                happen(world, future_.take_first());
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

    template <class World>
    void happen(World& world, const agenda::entry& due) {
        now_ = due.at;
        ++events_;
        if (due.item->kind == appointment::what::arrival) {
            world.arrive(*due.item);
            return;
        }
        strand& late = *static_cast<strand*>(due.item);
        record(1U, static_cast<unsigned>(late.rank));
        call(late, wake::expired);
    }

    std::size_t stack_bytes_;
    time_point now_{};
    agenda future_;
    wait_list ready_;
    strand* current_ = nullptr;
    std::size_t live_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t trace_ = 0;
    std::deque<strand> strands_;
    wait_list idle_;
};

}  // namespace rill::inline RILL_ABI::simulated::detail

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_CALL_HISTORY_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_CALL_HISTORY_HPP

// ===== rill/transport/detail/call_history.hpp

namespace rill::inline RILL_ABI::detail {

/// The last `calls_remembered` calls that one rank has announced in one context, in whatever order.
///
/// Memory: grows with the numbers to `calls_remembered` entries.
class call_history {
  public:
    void announce(const call_signature& call) {
        const auto place = static_cast<std::size_t>(call.number % calls_remembered);
        if (place >= calls_.size()) calls_.resize(place + 1);
        calls_[place] = call;
        if (!newest_ || newest_->number < call.number) newest_ = call;
    }

    /// Call `number`, if it has been announced.
    std::optional<call_signature> entered(std::uint64_t number) const {
        const auto place = static_cast<std::size_t>(number % calls_remembered);
        if (place >= calls_.size() || !calls_[place] || calls_[place]->number != number) return std::nullopt;
        return calls_[place];
    }

    /// What to answer when time is up: call `number`, else the newest one if it is a later one.
    std::optional<call_signature> entered_or_later(std::uint64_t number) const {
        if (const auto exactly = entered(number)) return exactly;
        return newest_ && newest_->number > number ? newest_ : std::nullopt;
    }

  private:
    std::vector<std::optional<call_signature>> calls_;  // number n at n modulo calls_remembered
    std::optional<call_signature> newest_;
};

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_CALL_HISTORY_HPP

// ===== rill/transport/detail/simulated_table.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// A sparse table whose values move when others are inserted or erased. Open addressing without tombstones: a table
/// whose entries come and go allocates nothing once it has grown.
template <class Key, class Value>
class table {
  public:
    Value* find(const Key& key) {
        if (slots_.empty()) return nullptr;
        slot& s = slots_[place_of(key)];
        return s.used ? &s.value : nullptr;
    }

    /// The value of `key`, inserted where there is none.
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

    std::size_t size() const { return count_; }

  private:
    struct slot {
        Key key{};
        Value value{};
        bool used = false;
    };

    /// Where `key` is, or where it would go.
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

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_calls.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// What the ranks have entered and closed.
///
/// A closed context is remembered for a while: messages that come too late are dropped instead of filling the mailbox,
/// and peers that are behind still learn that the rank had entered their call.
class call_book {
  public:
    static constexpr std::size_t closed_remembered_per_rank = 1024;

    void announce(rank_t rank, std::uint64_t context, const call_signature& call) {
        entries_[{rank, context}].calls.announce(call);
    }

    std::optional<call_signature> entered(rank_t rank, std::uint64_t context, std::uint64_t number) {
        const entry* found = entries_.find({rank, context});
        return found == nullptr ? std::nullopt : found->calls.entered(number);
    }
    std::optional<call_signature> entered_or_later(rank_t rank, std::uint64_t context, std::uint64_t number) {
        const entry* found = entries_.find({rank, context});
        return found == nullptr ? std::nullopt : found->calls.entered_or_later(number);
    }

    void close(rank_t rank, std::uint64_t context) {
        entry& closing = entries_[{rank, context}];
        if (closing.closed) return;
        closing.closed = true;
        any_closed_ = true;
        std::deque<std::uint64_t>& remembered = closed_[{rank, 0}];
        remembered.push_back(context);
        if (remembered.size() <= closed_remembered_per_rank) return;
        entries_.erase({rank, remembered.front()});
        remembered.pop_front();
    }

    bool is_closed(rank_t rank, std::uint64_t context) {
        if (!any_closed_) return false;
        const entry* found = entries_.find({rank, context});
        return found != nullptr && found->closed;
    }

    std::uint64_t next_context(rank_t rank, std::uint64_t key) {
        constexpr std::uint64_t family = 0x72696C6C;  // keeps hashed contexts of key 0 apart from other uses of mix64
        return mix64(family, key, ++made_[{rank, key}]);
    }

  private:
    struct entry {
        rill::detail::call_history calls{};
        bool closed = false;
    };
    struct rank_key {
        rank_t rank = no_rank;
        std::uint64_t of_rank = 0;

        std::size_t hash() const { return mix64(static_cast<unsigned>(rank), of_rank); }
        friend bool operator==(const rank_key&, const rank_key&) = default;
    };

    table<rank_key, entry> entries_;
    table<rank_key, std::uint64_t> made_;
    table<rank_key, std::deque<std::uint64_t>> closed_;
    bool any_closed_ = false;
};

}  // namespace rill::inline RILL_ABI::simulated::detail

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_SAME_FAILURE_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_SAME_FAILURE_HPP

// ===== rill/transport/detail/same_failure.hpp

namespace rill::inline RILL_ABI::detail {

/// Whether both notices tell of one failure, perhaps in the ranks and contexts of different groups. A run uses it to
/// find the culprit's own rank when an error leaves the scope of a subgroup.
inline bool same_failure(const abort_notice& a, const abort_notice& b) {
    return a.operation == b.operation && a.kind == b.kind && a.reason == b.reason;
}

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_SAME_FAILURE_HPP

// ===== rill/transport/detail/simulated_network.hpp

namespace rill::inline RILL_ABI::simulated {

/// What the ranks are connected by: a directed link between every two of them. A message of n bytes starts when its
/// link is free, occupies it for n / bandwidth, and arrives `latency` later (the α-β model); a link keeps the order.
struct network {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;            ///< bytes per second of each directed link; 0: without limit
    duration jitter{};                                  ///< adds to each message's latency, uniform in [0, jitter]
    std::uint64_t seed = 0;                             ///< of the jitter
    std::size_t mailbox_bytes = std::size_t{64} << 20;  ///< bound of what a rank has been handed and not received
    duration poll = nanoseconds(100);  ///< what looking in vain costs, so that a loop that only looks gets on
    std::size_t stack_bytes = std::size_t{512} << 10;  ///< of each activity, reserved but not touched

    friend constexpr bool operator==(const network&, const network&) = default;

    /// How long `bytes` occupy a link, rounded up.
    constexpr duration transfer(std::uint64_t bytes) const { return transfer_time(bytes, bandwidth); }

    /// Latency of message `number` of the link from `source` to `destination`.
    constexpr duration delay(rank_t source, rank_t destination, std::uint64_t number) const {
        if (jitter.ns <= 0) return latency;
        const random_key link =
            random_key{seed}.derive(static_cast<unsigned>(source), static_cast<unsigned>(destination));
        random_sequence of_message(link.derive(number));
        const std::uint64_t extra = of_message.below(static_cast<std::uint64_t>(jitter.ns) + 1);
        return latency + duration(static_cast<std::int64_t>(extra));
    }
};

/// What a run did. Two runs with equal reports went the same way.
struct report {
    duration elapsed{};            ///< virtual time at which the last rank ended
    std::uint64_t events = 0;      ///< arrivals and expired waits
    std::uint64_t messages = 0;    ///< posted
    std::uint64_t bytes = 0;       ///< posted
    std::uint64_t trace_hash = 0;  ///< of all posts and events, in order, with their times

    friend constexpr bool operator==(const report&, const report&) = default;
};

}  // namespace rill::inline RILL_ABI::simulated

// ===== rill/transport/detail/simulated_who_waits.hpp

namespace rill::inline RILL_ABI::simulated::detail {

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

/// "rank 0 waits for a message from rank 1 (context 0, tag 7)"
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
    return who + "an instant that never comes";
}

/// All that is waited for, one entry for each waiting activity.
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

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_control.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// Waits, and what ends them before their time. Notices take no time.
class control {
  public:
    explicit control(const network& chosen) : scheduler_(chosen.stack_bytes), poll_(chosen.poll) {}

    time_point now() const { return scheduler_.now(); }
    scheduler& activities() { return scheduler_; }
    const strand& current() const { return scheduler_.current(); }

    bool passed(deadline until) const { return until.at <= now(); }

    /// What looking in vain costs.
    void poll() noexcept {
        wait_record looking{.kind = waits_for::time, .ends_with_context = false};
        scheduler_.wait(idle_, looking, now() + poll_);
    }

    /// Throws what has ended the context, or the current activity.
    void throw_if_ended(std::uint64_t context) const {
        if (!notices_.empty())
            if (const abort_notice* notice = find_notice(context)) throw_error(*notice);
        const strand& own = scheduler_.current();
        if (own.stopped)
            throw_error(
                {.context = context,
                 .culprit = own.rank,
                 .reason = "rank " + std::to_string(own.rank) + " left an activity behind: an exception passed it"});
    }

    /// True when called, false when `until` has passed.
    bool wait(wait_list& where, wait_record what, deadline until) {
        return concluded(scheduler_.wait(where, what, until), what);
    }

    void sleep_until(time_point instant) {
        throw_if_ended(every_context);
        if (instant <= now()) return;
        wait(idle_, {.kind = waits_for::time}, instant);
    }

    /// Ends the waits of an activity, now and later.
    void stop(strand& activity) noexcept {
        activity.stopped = true;
        if (activity.waiting != nullptr && activity.waiting->ends_with_context) scheduler_.call(activity, wake::ended);
    }
    void wait_for_end(strand& activity) noexcept {
        wait_record what{.kind = waits_for::activity, .ends_with_context = false};
        while (activity.running) scheduler_.wait(activity.joining, what, deadline::never);
    }

    /// The first notice of a context wins, and a notice of all contexts is one of each.
    abort_notice abort(const abort_notice& notice) {
        if (const abort_notice* first = find_notice(notice.context)) return *first;
        notices_.push_back(notice);
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr && each.waiting->ends_with_context &&
                (notice.context == every_context || each.waiting->on.context == notice.context))
                scheduler_.call(each, wake::ended);
        return notice;
    }
    std::optional<abort_notice> aborted(std::uint64_t context) const {
        const abort_notice* first = find_notice(context);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// Ends everything because the exception being handled has left the body of `rank`.
    void fail(rank_t rank) {
        const rank_t culprit = abort(notice_of_current(rank)).culprit;
        if (thrown_ != nullptr && (culprit_threw_ || culprit != rank)) return;
        thrown_ = std::current_exception();
        culprit_threw_ = culprit == rank;
    }

    /// Every activity waits for another: all waits throw `deadlock`.
    void nothing_left() {
        abort({.context = every_context,
               .kind = failure::deadlock,
               .reason = "deadlock at " + std::to_string(now().ns) + " ns: " + who_waits(scheduler_.strands())});
        if (scheduler_.ready()) return;
        // Only waits that nothing ends are left: a message whose reader waits for its own sender.
        for (strand& each : scheduler_.strands())
            if (each.waiting != nullptr) scheduler_.call(each, wake::ended);
    }

  protected:
    bool concluded(wake outcome, const wait_record& what) const {
        if (outcome == wake::ended) throw_if_ended(what.on.context);
        return outcome == wake::called;
    }

    /// What ended the run, if anything did.
    void rethrow() const {
        if (thrown_ != nullptr) std::rethrow_exception(thrown_);
        if (const abort_notice* end = find_notice(every_context); end != nullptr && end->kind == failure::deadlock)
            throw_error(*end);
    }

    scheduler scheduler_;

  private:
    const abort_notice* find_notice(std::uint64_t context) const {
        const abort_notice* of_all = nullptr;
        for (const abort_notice& each : notices_) {
            if (each.context == context) return &each;
            if (each.context == every_context) of_all = &each;
        }
        return of_all;
    }

    /// In ranks of this world, also where the error tells of a failure in ranks of a subgroup.
    abort_notice notice_of_current(rank_t rank) const {
        abort_notice notice{.context = every_context, .culprit = rank, .reason = {}};
        try {
            throw;
        } catch (const error& caught) {
            const auto origin = std::find_if(notices_.begin(), notices_.end(), [&](const abort_notice& each) {
                return rill::detail::same_failure(each, caught.notice());
            });
            notice = origin == notices_.end() ? caught.notice() : *origin;
            notice.context = every_context;
            if (notice.culprit == no_rank && notice.kind != failure::deadlock) notice.culprit = rank;
        } catch (const std::exception& caught) {
            notice.reason = "rank " + std::to_string(rank) + " failed: " + caught.what();
        } catch (...) {
            notice.reason = "rank " + std::to_string(rank) + " failed: an exception that is no std::exception";
        }
        return notice;
    }

    duration poll_;
    std::vector<abort_notice> notices_;
    wait_list idle_;  ///< those whom only time wakes
    std::exception_ptr thrown_{};
    bool culprit_threw_ = false;
};

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_links.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// The directed links that have been used, and how long messages take on them.
class link_table {
  public:
    explicit link_table(const network& chosen) : network_(chosen) {}

    /// When a message that is posted now arrives; the link is occupied from then on.
    time_point arrival(time_point now, rank_t source, rank_t receiver, std::size_t bytes) {
        link& used = links_[{source, receiver}];
        const time_point start = used.free_at > now ? used.free_at : now;
        used.free_at = start + network_.transfer(bytes);
        const time_point due = used.free_at + network_.delay(source, receiver, used.messages++);
        if (used.last_arrival < due) used.last_arrival = due;
        return used.last_arrival;
    }

  private:
    struct link_key {
        rank_t source = no_rank;
        rank_t receiver = no_rank;

        std::size_t hash() const { return mix64(static_cast<unsigned>(source), static_cast<unsigned>(receiver)); }
        friend bool operator==(const link_key&, const link_key&) = default;
    };
    struct link {
        time_point free_at{};
        time_point last_arrival{};
        std::uint64_t messages = 0;
    };

    network network_;
    table<link_key, link> links_;
};

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_post_office.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// A message from its post until both ends have let go of it.
struct parcel : appointment {
    enum class stage : std::uint8_t { on_the_way, arrived, taken, done };
    enum list : std::uint8_t { of_source, of_channel, of_receiver, lists };
    struct hook {
        parcel *before = nullptr, *after = nullptr;
    };

    parcel() : appointment(what::arrival) {}

    rank_t source = no_rank;
    rank_t receiver = no_rank;
    channel on{};
    byte_pieces pieces{};
    buffer owned{};
    bool handed_over = false;
    bool sender_holds = false;  ///< a `sending` refers to it
    stage at = stage::on_the_way;
    wait_list reading;  ///< who waits until it has been read
    hook hooks[lists]{};
};

template <parcel::list Which>
class parcel_list {
  public:
    parcel* first() const { return first_; }
    parcel* last() const { return last_; }
    bool empty() const { return first_ == nullptr; }
    static parcel* after(const parcel& p) { return p.hooks[Which].after; }
    static parcel* before(const parcel& p) { return p.hooks[Which].before; }

    void push_back(parcel& p) noexcept {
        p.hooks[Which] = {last_, nullptr};
        (last_ == nullptr ? first_ : last_->hooks[Which].after) = &p;
        last_ = &p;
    }
    void remove(parcel& p) noexcept {
        const parcel::hook h = p.hooks[Which];
        (h.before == nullptr ? first_ : h.before->hooks[Which].after) = h.after;
        (h.after == nullptr ? last_ : h.after->hooks[Which].before) = h.before;
    }

  private:
    parcel* first_ = nullptr;
    parcel* last_ = nullptr;
};

inline bool contains(std::span<const rank_t> peers, rank_t peer) {
    for (const rank_t each : peers)
        if (each == peer) return true;
    return false;
}

/// All messages of all ranks. Memory for those under way, none for pairs of ranks that have none.
class post_office {
  public:
    parcel& accept(rank_t source, rank_t receiver, channel on) {
        if (unused_.empty()) unused_.push_back(parcels_.emplace_back());
        parcel& p = *unused_.first();
        unused_.remove(p);
        p.source = source;
        p.receiver = receiver;
        p.on = on;
        p.at = parcel::stage::on_the_way;
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
    /// The one from any of `peers` that arrived after `p` on its channel, or null.
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

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_world.hpp

namespace rill::inline RILL_ABI::simulated::detail {

/// What the ranks share: the mail between them on top of what they all hear and wait for.
class world : public control {
  public:
    world(int ranks, const network& chosen)
        : control(chosen),
          mailbox_bytes_(chosen.mailbox_bytes),
          ranks_(static_cast<std::size_t>(ranks)),
          links_(chosen) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    traffic counted(rank_t rank) const { return ranks_[static_cast<std::size_t>(rank)].counted; }

    // --- messages

    parcel& post(rank_t source, rank_t receiver, channel on, const byte_pieces& pieces) {
        parcel& p = offices_.accept(source, receiver, on);
        p.pieces = pieces;
        p.handed_over = false;
        p.sender_holds = true;
        send(p);
        return p;
    }

    bool post(rank_t source, rank_t receiver, channel on, buffer&& bytes, deadline until) {
        if (!reserve_room(receiver, on, bytes.size(), until)) return false;
        parcel& p = offices_.accept(source, receiver, on);
        p.owned = std::move(bytes);
        bytes.clear();
        p.pieces = byte_view(p.owned);
        p.handed_over = true;
        p.sender_holds = false;
        send(p);
        return true;
    }

    /// Null when `until` has passed.
    parcel* receive(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on.context);
        if (parcel* p = offices_.first(self, peers, on)) return &take(*p);
        return await(self, peers, on, until);
    }

    parcel* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        throw_if_ended(on.context);
        parcel* newest = offices_.first(self, peers, on);
        if (newest == nullptr) return await(self, peers, on, until);
        while (parcel* next = offices_.next(*newest, peers)) drop(*std::exchange(newest, next));
        return &take(*newest);
    }

    /// By the receiver, who will not read the message again.
    void release(parcel& p) noexcept {
        p.at = parcel::stage::done;
        scheduler_.call_all(p.reading);
        if (!p.sender_holds) offices_.give_back(p);
    }

    /// By the sender, who forgets the message: withdraws it if nobody has taken it.
    void let_go(parcel& p) noexcept {
        p.sender_holds = false;
        if (p.at == parcel::stage::done)
            offices_.give_back(p);
        else if (p.at != parcel::stage::taken)
            drop(p);
    }

    bool wait_until_read(parcel& p, deadline until) {
        if (p.at == parcel::stage::done) return true;
        throw_if_ended(p.on.context);
        if (passed(until)) return poll(), p.at == parcel::stage::done;
        return wait(p.reading, {.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on}, until);
    }

    void settle(parcel& p) noexcept {
        if (p.at != parcel::stage::taken) return;
        wait_record what{.kind = waits_for::reading, .peers = {&p.receiver, 1}, .on = p.on, .ends_with_context = false};
        scheduler_.wait(p.reading, what, deadline::never);
    }

    // --- control

    void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        calls_.announce(self, context, call);
        for (strand* s = at(self).inquiring.first(); s != nullptr;) {
            strand* const after = s->after;
            if (s->waiting->on.context == context && s->waiting->amount == call.number) scheduler_.call(*s);
            s = after;
        }
    }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        throw_if_ended(context);
        if (const auto entered = calls_.entered(peer, context, number)) return entered;
        wait_record what{
            .kind = waits_for::announcement, .peers = {&peer, 1}, .on = {.context = context}, .amount = number};
        if (passed(until))
            poll();
        else
            wait(at(peer).inquiring, what, until);
        return calls_.entered_or_later(peer, context, number);
    }

    std::uint64_t next_context(rank_t self, std::uint64_t key) { return calls_.next_context(self, key); }

    void close(rank_t self, std::uint64_t context) {
        calls_.close(self, context);
        for (parcel* p = at(self).mail.first(); p != nullptr;) {
            parcel* const after = at(self).mail.after(*p);
            if (p->on.context == context) drop(*p);
            p = after;
        }
        for (strand* s = at(self).posting.first(); s != nullptr;) {
            strand* const after = s->after;
            if (s->waiting->on.context == context) admit(at(self), *s);  // what they post is dropped
            s = after;
        }
    }

    // --- the run

    report run() {
        scheduler_.run(*this);
        rethrow();
        return {.elapsed = now() - time_point{},
                .events = scheduler_.events(),
                .messages = messages_,
                .bytes = bytes_,
                .trace_hash = scheduler_.trace()};
    }

    void arrive(appointment& due) {
        parcel& p = static_cast<parcel&>(due);
        scheduler_.record(2U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver));
        deliver(p);
    }

  private:
    struct rank_state {
        wait_list receiving;
        wait_list posting;  ///< to this rank, which has no room
        wait_list inquiring;
        parcel_list<parcel::of_receiver> mail;  ///< under way or arrived
        std::size_t handed_over = 0;            ///< bytes of that mail that this rank must store
        traffic counted{};
    };

    rank_state& at(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    // --- the way of a message

    void send(parcel& p) {
        const std::size_t size = p.pieces.size_bytes();
        traffic& counted = at(p.source).counted;
        counted += {.messages_sent = 1, .bytes_sent = size};
        ++messages_;
        bytes_ += size;
        scheduler_.record(3U, static_cast<unsigned>(p.source), static_cast<unsigned>(p.receiver), size);
        at(p.receiver).mail.push_back(p);
        if (calls_.is_closed(p.receiver, p.on.context))
            drop(p);
        else if (p.source == p.receiver)
            deliver(p);
        else
            scheduler_.future().add(p, links_.arrival(now(), p.source, p.receiver, size));
    }

    void deliver(parcel& p) {
        for (strand* s = at(p.receiver).receiving.first(); s != nullptr; s = s->after) {
            wait_record& what = *s->waiting;
            if (what.on != p.on || !contains(what.peers, p.source)) continue;
            what.delivered = &take(p);
            scheduler_.call(*s);
            return;
        }
        offices_.store(p);
    }

    /// Off the way, or out of the mailbox.
    void remove(parcel& p) noexcept {
        if (p.pending()) scheduler_.future().remove(p);
        if (p.at == parcel::stage::arrived) offices_.remove(p);
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
        if (passed(until)) return poll(), nullptr;
        wait_record what{.kind = waits_for::message, .peers = peers, .on = on};
        return concluded(scheduler_.wait(at(self).receiving, what, until), what) ? what.delivered : nullptr;
    }

    // --- room

    bool fits(const rank_state& receiver, std::size_t bytes) const {
        return receiver.handed_over == 0 ||
               (receiver.handed_over <= mailbox_bytes_ && bytes <= mailbox_bytes_ - receiver.handed_over);
    }

    bool reserve_room(rank_t peer, channel on, std::size_t bytes, deadline until) {
        rank_state& receiver = at(peer);
        if (calls_.is_closed(peer, on.context) || (receiver.posting.empty() && fits(receiver, bytes))) {
            receiver.handed_over += bytes;
            return true;
        }
        if (passed(until)) return poll(), false;
        throw_if_ended(on.context);
        wait_record what{.kind = waits_for::room, .peers = {&peer, 1}, .on = on, .amount = bytes};
        const wake outcome = scheduler_.wait(receiver.posting, what, until);
        if (outcome != wake::called) offer_room(receiver);  // those behind may need less
        return concluded(outcome, what);
    }

    /// Keeps it for those who wait, so that nobody overtakes them.
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

    std::size_t mailbox_bytes_;
    std::vector<rank_state> ranks_;
    post_office offices_;
    link_table links_;
    call_book calls_;
    std::uint64_t messages_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace rill::inline RILL_ABI::simulated::detail

// ===== rill/transport/detail/simulated_activity.hpp

namespace rill::inline RILL_ABI::simulated {

/// A fiber of one rank. `join()` waits for its end and rethrows what it threw. The destructor joins and forgets what
/// it threw; when it runs because an exception unwinds, the activity's waits throw `peer_failure`, so that it ends.
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

    /// `body` is moved to the new fiber's own stack before this returns.
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

}  // namespace rill::inline RILL_ABI::simulated

// ===== rill/transport/detail/simulated_meeting.hpp

namespace rill::inline RILL_ABI::simulated {

class endpoint;

/// A flag that activities of one rank wait for. Its waits belong to no context: only an abort of all contexts ends
/// them.
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
        world_->throw_if_ended(every_context);
        if (set_) return true;
        if (world_->passed(until)) return world_->poll(), set_;
        return world_->wait(waiting_, {.kind = detail::waits_for::event}, until);
    }

  private:
    detail::world* world_;
    detail::wait_list waiting_;
    bool set_ = false;
};

/// Passes values between activities of one rank, first in, first out; unbounded. Its waits belong to no context.
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
        world_->throw_if_ended(every_context);
        while (taken_ == values_.size()) {
            if (closed_) return std::nullopt;
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
    /// Ends the waits of those who pop, now and later, once the values are taken.
    void close() {
        closed_ = true;
        world_->activities().call_all(waiting_);
    }

  private:
    detail::world* world_;
    detail::wait_list waiting_;
    std::vector<T> values_;
    std::size_t taken_ = 0;  ///< leading values that are gone
    bool closed_ = false;
};

}  // namespace rill::inline RILL_ABI::simulated

// ===== rill/transport/detail/simulated_message.hpp

namespace rill::inline RILL_ABI::simulated {

/// A received message. Its pieces lie in the sender's memory, or in the buffer that was handed over; destroying it lets
/// the sender go on.
class message {
  public:
    rank_t source() const { return parcel_->source; }
    byte_pieces pieces() const { return parcel_->pieces; }

  private:
    friend class endpoint;
    struct releaser {
        detail::world* of;
        void operator()(detail::parcel* read) const noexcept { of->release(*read); }
    };

    message(detail::world& world, detail::parcel& taken) : parcel_(&taken, {&world}) {}

    std::unique_ptr<detail::parcel, releaser> parcel_;
};

/// A borrowed send under way: done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;

    bool done() noexcept {
        if (!is_done()) world().poll();
        return is_done();
    }

    /// True when done, false when `until` has passed; throws what ended the context.
    bool wait(deadline until) { return parcel_ == nullptr || world().wait_until_read(*parcel_, until); }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    void settle() noexcept {
        if (parcel_ == nullptr) return;
        world().settle(*parcel_);
        parcel_.reset();
    }

  private:
    friend class endpoint;
    struct forgetter {
        detail::world* of;
        void operator()(detail::parcel* posted) const noexcept { of->let_go(*posted); }
    };

    sending(detail::world& world, detail::parcel& posted) : parcel_(&posted, {&world}) {}

    detail::world& world() const { return *parcel_.get_deleter().of; }
    bool is_done() const { return parcel_ == nullptr || parcel_->at == detail::parcel::stage::done; }

    std::unique_ptr<detail::parcel, forgetter> parcel_;
};

}  // namespace rill::inline RILL_ABI::simulated

// ===== rill/transport/simulated.hpp

namespace rill::inline RILL_ABI::simulated {

/// One rank in a simulated network. Models `ConcurrentTransport`; an activity is a fiber, all run on one thread.
///
/// The clock is virtual: computing takes no time, messages take what the network says, looking in vain takes
/// `network::poll`. Messages to oneself, the release of a borrowed message, room in a mailbox and the control channel
/// (abort, announce, inquire) take effect at once. A borrowed message is read where it lies, in the sender's memory; a
/// buffer that is handed over is moved. Posts and receives allocate nothing once as many messages have been under way
/// as ever will be. No message or sending may outlive the `run` that it comes from. A context that a rank has closed is
/// not used by it again.
class endpoint {
  public:
    using message = simulated::message;
    using sending = simulated::sending;
    using activity = simulated::activity;
    using event = simulated::event;
    template <class T>
    using queue = simulated::queue<T>;

    endpoint(detail::world& world, rank_t rank) : world_(&world), rank_(rank) {}
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;

    rank_t rank() const { return rank_; }
    int size() const { return world_->size(); }
    time_point now() const { return world_->now(); }
    traffic counted() const { return world_->counted(rank_); }
    void sleep_until(time_point instant) { world_->sleep_until(instant); }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        check(peer);
        return {*world_, world_->post(rank_, peer, on, pieces)};
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        check(peer);
        return world_->post(rank_, peer, on, std::move(bytes), until);
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return receive(std::span(&peer, 1), on, until);
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        check(peers);
        return wrap(world_->receive(rank_, peers, on, until));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        check(peers);
        return wrap(world_->receive_latest(rank_, peers, on, until));
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        const auto received = receive(peer, on, until);
        if (received) rill::detail::copy_message(rank_, *received, on, targets);
        return received.has_value();
    }

    void announce(std::uint64_t context, const call_signature& call) { world_->announce(rank_, context, call); }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        check(peer);
        return world_->inquire(peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) { return world_->abort(notice); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return world_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return world_->next_context(rank_, key); }
    void close(std::uint64_t context) { world_->close(rank_, context); }

    /// Tells the activities of a rank apart: the same in all calls of one.
    const void* this_activity() const { return &world_->current(); }

    template <class Body>
    activity spawn(Body body) {
        return {*world_, rank_, body};
    }

  private:
    friend class simulated::event;
    template <class T>
    friend class simulated::queue;

    void check([[maybe_unused]] rank_t peer) const {
        RILL_EXPECTS(0 <= peer && peer < size(), "simulated: no such peer rank");
    }
    void check(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers) check(peer);
    }

    std::optional<message> wrap(detail::parcel* taken) {
        if (taken == nullptr) return std::nullopt;
        return message(*world_, *taken);
    }

    detail::world* world_;
    rank_t rank_;
};

inline event::event(endpoint& net) : world_(net.world_) {}

static_assert(ConcurrentTransport<endpoint>);

/// Calls `body(endpoint&)` as each of `ranks` ranks, in virtual time and on the calling thread, and returns when all
/// have ended. The same bodies with the same network go the same way, bit for bit.
///
/// An exception that leaves a body aborts every context, with that rank as the culprit and what it says as the reason,
/// so that the waits of all other ranks throw; `run` then rethrows the culprit's own exception. When all wait and
/// nothing can happen any more, all waits and `run` throw `deadlock`, which says who waits for whom.
template <class Body>
report run(int ranks, const network& links, Body&& body) {
    RILL_EXPECTS(ranks >= 1, "simulated::run: needs at least one rank");
    RILL_EXPECTS(links.latency.ns >= 0 && links.jitter.ns >= 0 && links.poll.ns > 0,
                 "simulated::run: latency and jitter must not be negative, poll must be positive");
    struct start {
        detail::world shared;
        std::remove_reference_t<Body>* body;
    } all{.shared = detail::world(ranks, links), .body = std::addressof(body)};
    const auto run_one = [](void* context, detail::strand& self) {
        start& of = *static_cast<start*>(context);
        try {
            endpoint net(of.shared, self.rank);
            (*of.body)(net);
        } catch (...) {
            of.shared.fail(self.rank);
        }
    };
    for (rank_t rank = 0; rank < ranks; ++rank) all.shared.activities().start(rank, {run_one, &all});
    return all.shared.run();
}

}  // namespace rill::inline RILL_ABI::simulated

#endif  // RILL_SINGLE_TRANSPORT_SIMULATED_HPP
