// rill 0.1.0: <rill/transport/mpi.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_MPI_HPP
#define RILL_SINGLE_TRANSPORT_MPI_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/mpi.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/mpi.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
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

// ===== rill/transport/detail/mail_fiber.hpp

// Fibers on POSIX contexts: a switch costs two system calls, and no further library is needed.

#if __has_include(<ucontext.h>) && __has_include(<sys/mman.h>)
#define RILL_DETAIL_MAIL_FIBERS 1
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#else
#define RILL_DETAIL_MAIL_FIBERS 0
#include <stdexcept>
#endif

namespace rill { inline namespace RILL_ABI { namespace mail {

#if RILL_DETAIL_MAIL_FIBERS

/// A stack of whole pages, the lowest of which is a guard page, and the switch of POSIX contexts.
class posix_context {
  public:
    posix_context(std::size_t stack_bytes, void (*run)(void*), void* argument) : run_(run), argument_(argument) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        size_ = (stack_bytes + page - 1) / page * page + page;
        bottom_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (bottom_ == MAP_FAILED) throw std::bad_alloc();
        ::mprotect(bottom_, page, PROT_NONE);
        ::getcontext(&context_);
        context_.uc_stack.ss_sp = bottom_;
        context_.uc_stack.ss_size = size_;
        context_.uc_link = nullptr;
        const auto self = reinterpret_cast<std::uintptr_t>(this);
        ::makecontext(&context_, reinterpret_cast<void (*)()>(&posix_context::start), 2,
                      static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
    }
    posix_context(const posix_context&) = delete;
    posix_context& operator=(const posix_context&) = delete;
    ~posix_context() {
        annotation_.release();
        ::munmap(bottom_, size_);
    }

    const void* bottom() const { return bottom_; }
    std::size_t size() const { return size_; }
    rill::detail::stack_annotation& annotation() { return annotation_; }

    RILL_DETAIL_SWITCHES void enter() { ::swapcontext(&host_, &context_); }
    RILL_DETAIL_SWITCHES void leave() { ::swapcontext(&context_, &host_); }

  private:
    /// Takes the address of the context in two halves, because makecontext passes int.
    RILL_DETAIL_SWITCHES static void start(unsigned high, unsigned low) noexcept {
        // NOLINTNEXTLINE(performance-no-int-to-ptr): there is no other way
        posix_context& own = *reinterpret_cast<posix_context*>((std::uintptr_t{high} << 32) | low);
        own.run_(own.argument_);
    }

    void (*run_)(void*);
    void* argument_;
    void* bottom_ = nullptr;
    std::size_t size_ = 0;
    rill::detail::stack_annotation annotation_{};
    ucontext_t context_{};
    ucontext_t host_{};
};

using fiber = rill::detail::fiber_on<posix_context>;

#else

/// Without Boost.Context there are no fibers.
class fiber {
  public:
    fiber(std::size_t, void (*)(void*), void*) {
        throw std::logic_error(
            "rill: no activities here: the transport allows one thread (over MPI: less than MPI_THREAD_MULTIPLE), and "
            "the system lacks the "
            "contexts (ucontext.h) by which they could share the rank's thread");
    }
    void resume() {}
    void suspend() {}
};

#endif

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_fiber_team.hpp

// Activities where the port allows one thread: fibers of the rank's one thread.

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The state of an activity, which is a thread or a fiber.
struct activity_state {
    std::atomic<bool> stop{false};  ///< its waits must throw
    std::exception_ptr thrown{};
};

/// The activities that take turns on one thread. A fiber that waits gives control back to whoever resumed it; the
/// thread itself, when it waits, resumes all fibers one after the other.
class fiber_team {
  public:
    /// A fiber that runs one job after the other, so that its stack is used again.
    struct member {
        explicit member(fiber_team& of, std::size_t stack_bytes)
            : owner(of), strand(stack_bytes, &member::run_jobs, this) {}

        fiber_team& owner;
        void (*job)(void*) = nullptr;
        void* argument = nullptr;
        activity_state state{};
        bool finished = true;
        fiber strand;

      private:
        static void run_jobs(void* self) {
            for (member& own = *static_cast<member*>(self); own.job != nullptr; own.strand.suspend()) {
                try {
                    own.job(own.argument);
                } catch (...) {
                    own.state.thrown = std::current_exception();
                }
                own.finished = true;
            }
        }
    };

    fiber_team() = default;
    fiber_team(const fiber_team&) = delete;
    fiber_team& operator=(const fiber_team&) = delete;
    ~fiber_team() {
        for (auto& each : idle_) {
            each->job = nullptr;
            each->strand.resume();
        }
    }

    bool any() const { return !busy_.empty(); }
    bool is_inside() const { return current_ != nullptr; }
    const member* current() const { return current_; }
    bool must_stop() const { return current_ != nullptr && current_->state.stop.load(std::memory_order_relaxed); }

    /// Runs `job(argument)` until it waits for the first time.
    member& start(void (*job)(void*), void* argument, std::size_t stack_bytes) {
        if (idle_.empty()) idle_.push_back(std::make_unique<member>(*this, stack_bytes));
        busy_.push_back(std::move(idle_.back()));
        idle_.pop_back();
        member& started = *busy_.back();
        started.job = job;
        started.argument = argument;
        started.finished = false;
        started.state.stop = false;
        resume(started);
        return started;
    }

    /// Called inside a fiber; returns control to whoever resumed it.
    void pass() { current_->strand.suspend(); }

    /// Called outside fibers; resumes each fiber in turn.
    void take_turns() {
        for (std::size_t i = 0; i < busy_.size(); ++i)  // NOLINT(modernize-loop-convert): one may start another
            if (!busy_[i]->finished) resume(*busy_[i]);
    }

    /// Makes a finished fiber free for the next activity.
    void dismiss(member& done) noexcept {
        const auto found =
            std::find_if(busy_.begin(), busy_.end(), [&](const auto& each) { return each.get() == &done; });
        idle_.push_back(std::move(*found));
        busy_.erase(found);
    }

  private:
    void resume(member& next) {
        member* const outer = std::exchange(current_, &next);
        next.strand.resume();
        current_ = outer;
    }

    member* current_ = nullptr;
    std::vector<std::unique_ptr<member>> busy_, idle_;
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_control.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// What ends all contexts where a rank has gone without a farewell.
inline abort_notice notice_of_loss(rank_t gone) {
    return {
        .context = every_context, .culprit = gone, .reason = text_of({"rank ", gone, " has gone without a farewell"})};
}

/// One rank's knowledge from the control channel: notices, calls, and open questions.
struct control {
    struct question {
        rank_t peer;
        std::uint64_t context;
        std::uint64_t number;

        friend bool operator==(const question&, const question&) = default;
    };
    struct answer {
        rank_t peer;
        std::uint64_t context;
        rill::detail::call_history calls;
    };

    struct report {
        rank_t source;
        abort_notice notice;

        auto order() const { return std::pair(notice.culprit, source); }
    };

    rill::detail::call_table calls{};
    std::unordered_map<std::uint64_t, std::vector<abort_notice>> notices{};  ///< of each context, in order
    std::vector<report> reports{};      ///< aborts, none of which is known to be the first
    std::vector<question> questions{};  ///< of others, not yet answered
    std::vector<answer> answers{};      ///< from each peer and context
    std::uint32_t rounds_heard = 0;     ///< of leaving, by bit
    int rounds_told = 0;
    bool has_left = false;
    bool has_departed = false;              ///< this rank's body has returned
    bool any_failed = false;                ///< of those that left
    bool monitors = false;                  ///< this rank is told what becomes of the others, and goes on
    std::optional<abort_notice> failure{};  ///< what this rank's body has thrown

    /// What has ended the waits on a channel.
    const abort_notice* find_notice(channel on) const {
        if (notices.empty()) return nullptr;
        for (const std::uint64_t context : {on.context, every_context})
            if (const auto found = notices.find(context); found != notices.end())
                for (const abort_notice& notice : found->second)
                    if (notice.ends(on.tag)) return &notice;
        return nullptr;
    }
    /// The notice that ends all that this one would end.
    const abort_notice* first_before(const abort_notice& notice) const {
        return find_notice({notice.context, notice.first_tag});
    }

    /// Finds the notice of the failure that `told` reports in ranks of a subgroup, so that this endpoint's ranks are
    /// known.
    std::optional<abort_notice> origin_of(const abort_notice& told) const {
        for (const auto& [context, all] : notices)
            for (const abort_notice& notice : all)
                if (rill::detail::same_failure(notice, told)) return notice;
        return std::nullopt;
    }

    /// Stores a notice unless its context already has one. One of all contexts ends none where this rank monitors.
    void learn(const abort_notice& notice) {
        const bool ends_nothing = monitors && notice.context == every_context;
        if (!ends_nothing && first_before(notice) == nullptr) notices[notice.context].push_back(notice);
        std::erase_if(reports, [&](const report& r) {
            return first_before(r.notice) != nullptr || (ends_nothing && r.notice.context == every_context);
        });
    }
    /// What has ended others by now is told to this rank as their ends.
    void begin_to_monitor() {
        monitors = true;
        notices.erase(every_context);
    }
    /// The report for a context with the lowest culprit, so that ranks with equal reports choose the same one. There
    /// must be a report for the context.
    const abort_notice& foremost_report(std::uint64_t context) const {
        const report* foremost = nullptr;
        for (const report& r : reports)
            if (r.notice.context == context && (foremost == nullptr || r.order() < foremost->order())) foremost = &r;
        return foremost->notice;
    }

    void learn(rank_t peer, std::uint64_t context, const call_signature& call) {
        const auto found = std::find_if(answers.begin(), answers.end(), [=](const answer& known) {
            return known.peer == peer && known.context == context;
        });
        answer& known = found == answers.end() ? answers.emplace_back(answer{peer, context, {}}) : *found;
        known.calls.announce(call);
    }
    /// The calls that `peer` is known to have entered in a context, or null.
    rill::detail::call_history* told(rank_t peer, std::uint64_t context) {
        for (answer& known : answers)
            if (known.peer == peer && known.context == context) return &known.calls;
        return nullptr;
    }

    void remember(const question& asked) {
        if (std::find(questions.begin(), questions.end(), asked) == questions.end()) questions.push_back(asked);
    }

    void forget(std::uint64_t context) {
        std::erase_if(questions, [=](const question& q) { return q.context == context; });
        std::erase_if(answers, [=](const answer& a) { return a.context == context; });
    }
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_envelope.hpp

// The notes that travel on the communicator of notes: a fixed head, then up to `eager_bytes`. Nothing is converted,
// since all ranks run the same build on machines of one kind, which group creation checks.

namespace rill { inline namespace RILL_ABI { namespace mail {

/// What an envelope announces or asks.
enum class note : std::uint8_t {
    lent,             ///< a borrowed message, all of it
    handed,           ///< a handed-over message, all of it
    announce_lent,    ///< a borrowed message that waits at its sender: sizes of its pieces, content of the small ones
    announce_handed,  ///< a handed-over message that waits at its sender: sizes, content of the small pieces
    begin,            ///< a borrowed message that comes unasked: sizes of its pieces, then the first bytes of them
    go_on,            ///< the next bytes of message `id`, which has begun
    ask,              ///< asks for message `id`, to be sent with tag `tag` in `context` parts
    withdraw,         ///< message `id` will not be sent, or not the rest of it
    drop,             ///< message `id` will not be asked for, or no more of it is wanted
    credit,           ///< `id` handed-over bytes have been taken, and `context` bytes that came unasked
    want,             ///< the sender waits for credit
    report,           ///< an abort, which may be the first: to rank 0, or to all if rank 0 does not answer
    verdict,          ///< the notice that ended a context
    question,         ///< asks whether the receiver has entered call `id` of `context`; answered once it has
    answer,           ///< the call that was entered
    leave,    ///< in round k, to the rank 2^k above: this rank and the 2^k - 1 below it have ended; `id` is 2 k,
              ///< and one more if one of them has failed
    monitor,  ///< the sender wants to be told when the body of the receiver has ended; `id` is 0 if it goes on then
    ended,    ///< the body of the sender has ended; its exception, if it has thrown
    loss      ///< rank `id` has gone without a farewell: to those that have not sent `monitor`
};

/// What precedes the bytes of every message between ranks.
struct envelope {
    std::uint64_t context = 0;
    std::uint64_t id = 0;
    std::uint32_t incarnation = 0;
    std::uint32_t tag = 0;
    std::uint32_t size = 0;  ///< bytes that follow
    note kind = note::lent;
    std::uint8_t pieces = 0;
    std::uint16_t unused = 0;
};
static_assert(sizeof(envelope) == 32);

/// The smallest `eager_bytes`: notices and calls must fit.
inline constexpr std::size_t least_eager_bytes = 1024;
/// Large pieces are cut into parts of at most this size, because MPI, a port, counts in int.
inline constexpr std::size_t most_part_bytes = std::size_t{1} << 30;
/// More than any address space has, and small enough that sums do not overflow.
inline constexpr std::uint64_t most_piece_bytes = std::uint64_t{1} << 48;
/// The most parts that a message is cut into.
inline constexpr std::uint64_t most_parts = byte_pieces::most * (most_piece_bytes / most_part_bytes);
/// Below 32767, up to which every MPI has tags.
inline constexpr std::uint32_t most_data_tag = 32'000;

/// An abort notice as bytes.
struct packed_notice {
    static constexpr std::size_t most_text = 900;
    struct fixed_part {
        std::uint64_t context, operation;
        std::int32_t culprit, other;
        std::uint32_t length, first_tag;
        failure kind;
    };
    std::byte bytes[sizeof(fixed_part) + most_text];
    std::size_t size = 0;

    explicit packed_notice(const abort_notice& notice) {
        const fixed_part fixed{.context = notice.context,
                               .operation = notice.operation,
                               .culprit = notice.culprit,
                               .other = notice.other,
                               .length = static_cast<std::uint32_t>(std::min(notice.reason.size(), most_text)),
                               .first_tag = notice.first_tag,
                               .kind = notice.kind};
        std::memcpy(bytes, &fixed, sizeof fixed);
        std::memcpy(bytes + sizeof fixed, notice.reason.data(), fixed.length);
        size = sizeof fixed + fixed.length;
    }

    byte_view view() const { return {bytes, size}; }

    static bool is_whole(byte_view from) {
        if (from.size() < sizeof(fixed_part)) return false;
        const fixed_part fixed = read(from);
        return from.size() == sizeof(fixed_part) + fixed.length && fixed.length <= most_text &&
               fixed.kind <= failure::deadlock && fixed.culprit >= no_rank && fixed.other >= no_rank;
    }
    static abort_notice unpack(byte_view from) {
        const fixed_part fixed = read(from);
        return {.context = fixed.context,
                .operation = fixed.operation,
                .kind = fixed.kind,
                .culprit = fixed.culprit,
                .other = fixed.other,
                .reason = {reinterpret_cast<const char*>(from.data() + sizeof fixed), fixed.length},
                .first_tag = fixed.first_tag};
    }

  private:
    static fixed_part read(byte_view from) {
        fixed_part fixed;
        std::memcpy(&fixed, from.data(), sizeof fixed);
        return fixed;
    }
};
static_assert(sizeof(packed_notice::bytes) <= least_eager_bytes && sizeof(call_signature) <= least_eager_bytes);

/// The content of an announcement: the sizes of all pieces, then the content of the small ones. The large pieces follow
/// when the receiver asks for the message.
struct announcement {
    static constexpr std::size_t table = byte_pieces::most * sizeof(std::uint64_t);

    static std::size_t aligned(std::size_t size) { return (size + 7) / 8 * 8; }
    static std::size_t size_bytes(const byte_pieces& pieces, std::size_t small) {
        std::size_t size = table;
        for (const byte_view piece : pieces) size += piece.size() <= small ? aligned(piece.size()) : 0;
        return size;
    }
    static void write_sizes(const byte_pieces& pieces, std::byte* at) {
        for (const byte_view piece : pieces) {
            const std::uint64_t size = piece.size();
            std::memcpy(at, &size, sizeof size);
            at += sizeof size;
        }
    }
    static void write(const byte_pieces& pieces, std::size_t small, std::byte* at) {
        write_sizes(pieces, at);
        std::byte* content = at + table;
        for (const byte_view piece : pieces) {
            if (piece.size() > small || piece.empty()) continue;
            std::memcpy(content, piece.data(), piece.size());
            content += aligned(piece.size());
        }
    }
    static std::uint64_t size_of_piece(const std::byte* at, std::size_t i) {
        std::uint64_t size = 0;
        std::memcpy(&size, at + i * sizeof size, sizeof size);
        return size;
    }
    static std::uint64_t size_of_pieces(const std::byte* at, std::size_t count) {
        std::uint64_t size = 0;
        for (std::size_t i = 0; i < count; ++i) size += size_of_piece(at, i);
        return size;
    }
    static bool is_whole(byte_view from, std::size_t pieces, std::size_t small) {
        if (pieces > byte_pieces::most || from.size() < table) return false;
        std::size_t size = table;
        bool any_large = false;  // otherwise there would be nothing to ask for
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::uint64_t piece = size_of_piece(from.data(), i);
            if (piece > most_piece_bytes) return false;
            if (piece > small)
                any_large = true;
            else
                size += aligned(piece);
        }
        return any_large && from.size() == size;
    }
    /// Of a message that comes unasked: the sizes of all pieces, then some of their bytes, but not all.
    static bool is_beginning(byte_view from, std::size_t pieces) {
        if (pieces > byte_pieces::most || from.size() < table) return false;
        std::uint64_t size = 0;
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::uint64_t piece = size_of_piece(from.data(), i);
            if (piece > most_piece_bytes) return false;
            size += piece;
        }
        return from.size() - table < size;
    }
};

/// Whether a note has the content that its kind requires. Pieces of up to `small` bytes travel with an announcement.
inline bool is_whole(const envelope& head, const std::byte* payload, std::size_t small) {
    const byte_view content(payload, head.size);
    switch (head.kind) {
        case note::lent:
        case note::handed: return head.pieces == 0;
        case note::announce_lent:
        case note::announce_handed: return announcement::is_whole(content, head.pieces, small);
        case note::begin: return announcement::is_beginning(content, head.pieces);
        case note::go_on: return !content.empty();
        case note::report:
        case note::verdict: return packed_notice::is_whole(content);
        case note::ended: return content.empty() || packed_notice::is_whole(content);
        case note::answer: return content.size() == sizeof(call_signature);
        case note::ask:
            return content.empty() && 0 < head.tag && head.tag <= most_data_tag && 0 < head.context &&
                   head.context <= most_parts;
        default: return head.kind <= note::loss && content.empty();
    }
}

/// Cuts the reason of a notice to the length that travels, so that all ranks know the same text.
inline abort_notice travelling(abort_notice notice) {
    if (notice.reason.size() > packed_notice::most_text) notice.reason.resize(packed_notice::most_text);
    return notice;
}

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_storage.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Uninitialised bytes, aligned to cache lines.
class storage {
  public:
    static constexpr std::size_t alignment = 64;

    storage() = default;
    explicit storage(std::size_t size)
        : data_(static_cast<std::byte*>(::operator new(size, std::align_val_t(alignment)))), size_(size) {}

    std::byte* data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    explicit operator bool() const { return data_ != nullptr; }

    /// Gives the memory up without freeing it, because the port may still write to it.
    void leak() noexcept { (void)data_.release(); }

  private:
    struct freer {
        void operator()(std::byte* data) const noexcept { ::operator delete(data, std::align_val_t(alignment)); }
    };

    std::unique_ptr<std::byte, freer> data_;
    std::size_t size_ = 0;
};

/// Keeps the memory of messages for later ones, so that a steady state allocates nothing.
class storage_pool {
  public:
    /// Returns at least `size` bytes, and not much more than four times as many.
    storage take(std::size_t size) {
        std::size_t best = spare_.size();
        for (std::size_t i = 0; i < spare_.size(); ++i)
            if (fits(spare_[i].size(), size) && (best == spare_.size() || spare_[i].size() < spare_[best].size()))
                best = i;
        if (best == spare_.size()) return storage(size);
        std::swap(spare_[best], spare_.back());
        storage taken = std::move(spare_.back());
        spare_.pop_back();
        bytes_ -= taken.size();
        return taken;
    }

    void put(storage&& unused) noexcept {
        storage given = std::move(unused);
        if (!given || given.size() > most_bytes) return;
        while (spare_.size() == most || bytes_ + given.size() > most_bytes) drop_oldest();
        if (spare_.capacity() < most) spare_.reserve(most);
        bytes_ += given.size();
        spare_.push_back(std::move(given));
    }

    void clear() noexcept {
        spare_.clear();
        bytes_ = 0;
    }

  private:
    static constexpr std::size_t most = 32;
    static constexpr std::size_t most_bytes = std::size_t{256} << 20;
    static bool fits(std::size_t has, std::size_t wanted) { return has >= wanted && has / 4 <= wanted + 4096; }

    void drop_oldest() noexcept {
        bytes_ -= spare_.front().size();
        spare_.erase(spare_.begin());
    }

    std::vector<storage> spare_;
    std::size_t bytes_ = 0;
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_inbox.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// How much of a message has arrived: all of it; its announcement, which has been answered or not; or some of one that
/// comes unasked.
enum class node_state : std::uint8_t { complete, announced, asked, begun };

/// A message from its arrival, or the arrival of its announcement, until its release by the receiver.
template <class Request>
struct node {
    static constexpr std::size_t inside = 448;

    alignas(storage::alignment) std::byte small[inside];  ///< the payload of the note, where it fits
    storage note{};                                       ///< the payload of a note that does not fit in `small`
    storage body{};                                       ///< the large pieces
    rank_t source = no_rank;
    channel on{};
    std::uint64_t arrival = 0;
    std::uint64_t id = 0;
    node_state is = node_state::complete;
    bool handed = false;
    bool unasked = false;  ///< it comes without being asked for
    bool withdrawn = false;
    bool claimed = false;   ///< it is in no list, because one receiver waits for it
    bool straight = false;  ///< it arrives in the targets of that receiver
    bool expected = false;  ///< it was expected, and is asked for before anybody waits for it
    bool placed = false;    ///< it arrives in the targets given with the expectation
    bool doomed = false;    ///< nobody will take it: it is recycled when it has arrived
    bool leaves = false;    ///< it is being moved out of the user's memory: see `transfers::redirection`
    bool latest = false;    ///< chosen by `take_latest`: later announcements do not displace it
    std::uint8_t count = 0;
    byte_pieces pieces{};
    std::size_t sizes[byte_pieces::most]{};
    std::size_t size = 0;
    std::vector<byte_span> parts{};  ///< where each part of the large pieces goes
    std::vector<Request> requests{};
    std::uint32_t data_tag = 0;
    std::uint32_t life = 0;  ///< of its sender, see `peer_state`
    node* next = nullptr;
    node* previous = nullptr;

    /// Whether its sender had withdrawn it before it was asked for.
    bool is_gone() const { return withdrawn && is == node_state::complete; }
    const std::byte* payload() const { return note ? note.data() + storage::alignment : small; }
};

/// A message that comes unasked and is not here whole.
template <class Request>
struct unasked_arrival {
    std::uint64_t id = 0;
    std::size_t left = 0;           ///< bytes that are to come
    node<Request>* into = nullptr;  ///< null: the message has been dropped
};

/// Messages that have arrived or been announced, in order, one list per sender.
template <class Request>
class inbox : public rill::detail::undelivered<mail::node<Request>> {
    using undelivered = rill::detail::undelivered<mail::node<Request>>;

  public:
    using node = mail::node<Request>;
    using undelivered::first;
    using undelivered::next;
    using undelivered::undelivered;

    /// Appends a message. Allocates only while more nodes are in use than ever before.
    node& append(rank_t source, channel on) {
        node& added = unused();
        added.source = source;
        added.on = on;
        undelivered::append(added);
        return added;
    }

    node* first_unexpected(rank_t source, channel on) {
        node* n = first(source, on);
        while (n != nullptr && n->expected) n = next(*n);
        return n;
    }

    /// Some message that `which(node)` selects, or null.
    template <class Which>
    node* find(Which which) {
        node* found = nullptr;
        this->for_each([&](node& n) {
            if (which(n)) found = &n;
        });
        return found;
    }

    void recycle(node& n) noexcept { n.next = std::exchange(free_, &n); }

  private:
    static constexpr std::size_t nodes_per_block = 16;

    node& unused() {
        if (free_ == nullptr) {
            blocks_.push_back(std::make_unique<node[]>(nodes_per_block));
            for (std::size_t i = 0; i < nodes_per_block; ++i) recycle(blocks_.back()[i]);
        }
        node& taken = *std::exchange(free_, free_->next);
        taken.handed = taken.unasked = taken.withdrawn = taken.claimed = taken.straight = false;
        taken.expected = taken.placed = taken.doomed = taken.leaves = taken.latest = false;
        taken.is = node_state::complete;
        return taken;
    }

    std::vector<std::unique_ptr<node[]>> blocks_;
    node* free_ = nullptr;
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_outbox.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The memory where a note is composed, and stays until the port has sent it.
template <class Request>
struct parcel {
    explicit parcel(std::size_t payload) : bytes(lead + sizeof(envelope) + payload) {}

    std::byte* head() const { return bytes.data() + lead; }
    std::byte* payload() const { return head() + sizeof(envelope); }
    std::size_t capacity() const { return bytes.size() - lead - sizeof(envelope); }

    static constexpr std::size_t lead = storage::alignment - sizeof(envelope);  ///< so that payloads are aligned
    storage bytes;
    Request request{};
    rank_t peer = no_rank;
};

/// The notes that the port is sending. No endpoint owns them, because the port may need them longer than the endpoint
/// lives.
template <class Port>
class parcels {
  public:
    using parcel = mail::parcel<typename Port::request>;

    explicit parcels(Port& through) : through_(through), flying_to_(static_cast<std::size_t>(through.size())) {}

    /// Sets the largest payload from now on. Notes of an earlier endpoint may still be on their way.
    void set_capacity(std::size_t payload) {
        if (payload == capacity_) return;
        capacity_ = payload;
        large_.clear();
    }

    parcel& compose(std::size_t payload) {
        auto& spare = payload <= small ? small_ : large_;
        if (spare.empty()) spare.push_back(std::make_unique<parcel>(payload <= small ? small : capacity_));
        return *spare.back();
    }

    /// Sends the note that `compose(head.size)` returned last.
    void send(const envelope& head, rank_t peer) {
        auto& spare = head.size <= small ? small_ : large_;
        parcel& sent = *spare.back();
        std::memcpy(sent.head(), &head, sizeof head);
        sent.request = through_.send_note(sent.head(), sizeof head + head.size, peer);
        sent.peer = peer;
        if (through_.is_complete(sent.request)) return;
        ++count_to(peer);
        flying_.push_back(std::move(spare.back()));
        spare.pop_back();
    }

    bool any_flying() const { return !flying_.empty(); }
    int flying_to(rank_t peer) const { return flying_to_[static_cast<std::size_t>(peer)]; }

    /// Tests all notes; true when the port has finished sending one.
    bool progress() {
        const std::size_t before = flying_.size();
        for (std::size_t i = 0; i < flying_.size();) {
            if (!through_.is_complete(flying_[i]->request)) {
                ++i;
                continue;
            }
            --count_to(flying_[i]->peer);
            std::swap(flying_[i], flying_.back());
            keep(std::move(flying_.back()));
            flying_.pop_back();
        }
        return flying_.size() != before;
    }

    /// Called when the port ends: leaks the memory that it may still use.
    void abandon() noexcept {
        for (auto& each : flying_) {
            if (!through_.abandon(each->request)) each->bytes.leak();
        }
        flying_.clear();
    }

  private:
    static constexpr std::size_t small = 448;

    int& count_to(rank_t peer) { return flying_to_[static_cast<std::size_t>(peer)]; }

    void keep(std::unique_ptr<parcel> landed) {
        const std::size_t capacity = landed->capacity();
        if (capacity == small)
            small_.push_back(std::move(landed));
        else if (capacity == capacity_)
            large_.push_back(std::move(landed));
    }

    Port& through_;
    std::size_t capacity_ = 0;
    std::vector<std::unique_ptr<parcel>> small_, large_, flying_;
    std::vector<int> flying_to_;
};

/// A large message that waits at its sender, or is being sent. No later message has its id. Of a message that is sent
/// unasked, `begun` bytes have been copied into notes.
template <class Request>
struct outgoing {
    std::uint64_t id = 0;
    rank_t peer = no_rank;
    byte_pieces pieces{};
    buffer owned{};
    bool is_open = false;
    bool is_moving = false;
    bool is_unasked = false;
    std::size_t begun = 0;
    std::vector<Request> requests{};
};

/// What this rank sends and the library below still needs, with the messages that wait to be asked for.
template <class Request>
class outbox {
  public:
    using outgoing = mail::outgoing<Request>;

    outgoing& open(rank_t peer) {
        if (free_.empty()) {
            free_.push_back(records_.size());
            records_.push_back(std::make_unique<outgoing>());
            records_.back()->id = records_.size() - 1;
            free_.reserve(records_.size());
        }
        outgoing& opened = *records_[free_.back()];
        free_.pop_back();
        opened.id += std::uint64_t{1} << 32;
        opened.peer = peer;
        opened.is_open = true;
        opened.is_moving = opened.is_unasked = false;
        return opened;
    }

    /// The message with an id; null once it is done, withdrawn or dropped.
    outgoing* find(std::uint64_t id) const {
        const std::size_t index = id & 0xFFFF'FFFFU;
        if (index >= records_.size() || records_[index]->id != id || !records_[index]->is_open) return nullptr;
        return records_[index].get();
    }

    void close(outgoing& done) noexcept {
        done.is_open = false;
        done.requests.clear();
        buffer().swap(done.owned);
        free_.push_back(done.id & 0xFFFF'FFFFU);
    }

    template <class Visit>
    void for_each_open(Visit visit) {
        for (auto& each : records_)
            if (each->is_open) visit(*each);
    }

  private:
    std::vector<std::unique_ptr<outgoing>> records_;
    std::vector<std::size_t> free_;
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_port.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A note that has been received; `source` is `no_rank` where there was none.
struct received_note {
    rank_t source = no_rank;
    std::size_t size = 0;
};

/// How the receive of a part has ended.
struct part_end {
    std::size_t size = 0;
    bool cancelled = false;
};

/// What the mail engine needs of a network. A port carries *notes*, short messages that arrive unasked, in order from
/// each peer; and *parts*, long messages, each to a receive that is already posted when its sender begins. Parts of
/// one peer and tag match receives in the order in which both were begun; a part may be shorter than its receive.
///
/// A `request` is true while what it stands for has not ended; the bytes must stay until then. `is_complete` and `look`
/// test it, and empty it when it has ended. `cancel` asks that a receive ends without a part; `look` says whether it
/// did: a part that is already arriving is received all the same. `abandon` gives a request up when the port ends:
/// false where the port may still use the bytes. No call waits, except `await_note`, which waits until there is a note.
///
/// A port that `wakes` lets several threads wait: its `await_note(lock, until)` gives up the engine's mutex meanwhile,
/// and ends also when `wake` is called, or `until` has passed. `receive_note` gives only what `await_note`, `attend` or
/// `look`, which does not wait, have taken from the network. It makes progress also while no thread waits: a thread of
/// its own calls `attend(lock)`, which is `await_note` except that `wake` does not end it, or else `rest(lock, time)`.
/// Any other port ignores the lock and the deadline.
///
/// `take_loss` says once of each peer that it has gone without a farewell, `no_rank` if there is none. What stands for
/// messages from or to a peer that has gone has ended. A port need not notice it of a peer that it has exchanged
/// nothing with, until `watch` is called for it. `take_goodbye` says the same of a peer that has left with a farewell,
/// once all its notes have been received: nothing comes from it any more.
///
/// An error of the network is thrown as `library_error`. The engine calls a port that is not concurrent from one
/// thread; any other under a mutex, except `rank`, `size`, `neighbours` and `now`.
template <class P>
concept MailPort = std::constructible_from<typename P::library_error, rank_t, const char*> &&
                   std::constructible_from<P, const typename P::place&> &&
                   std::default_initializable<typename P::request> && std::movable<typename P::request> &&
                   requires(P& own, const P& port, typename P::request& begun, const typename P::options& chosen,
                            const std::byte* from, std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag,
                            std::mutex& lock, deadline until) {
                       { port.rank() } -> std::same_as<rank_t>;
                       { port.size() } -> std::same_as<int>;
                       { port.neighbours() } -> std::same_as<int>;  // ranks that share its cores, this one included
                       { port.is_concurrent() } -> std::same_as<bool>;
                       { P::now() } -> std::same_as<time_point>;
                       { P::name } -> std::convertible_to<const char*>;
                       { P::outlived } -> std::convertible_to<const char*>;  // the text of the error after its end
                       { P::is_simulation } -> std::convertible_to<bool>;    // then naps are pointless
                       own.configure(chosen);
                       own.free();
                       { own.send_note(from, size, peer) } -> std::same_as<typename P::request>;
                       { own.receive_note(into, size) } -> std::same_as<received_note>;
                       { P::wakes } -> std::convertible_to<bool>;
                       own.await_note(lock, until);
                       { own.take_loss() } -> std::same_as<rank_t>;
                       { own.take_goodbye() } -> std::same_as<rank_t>;
                       own.watch(peer);
                       { own.send_part(from, size, peer, tag) } -> std::same_as<typename P::request>;
                       { own.receive_part(into, size, peer, tag) } -> std::same_as<typename P::request>;
                       { static_cast<bool>(begun) };
                       { own.is_complete(begun) } -> std::same_as<bool>;
                       { own.look(begun) } -> std::same_as<std::optional<part_end>>;
                       { own.cancel(begun) } noexcept;
                       { own.abandon(begun) } noexcept -> std::same_as<bool>;
                       { own.end_job() } noexcept;
                   };

/// What a port tells of a peer: `arrived`, `silent` or `recovered`.
struct peer_news {
    rank_t peer = no_rank;
    peer_change change{};
};

/// A port for a `MonitoredTransport`. `incarnation` is that of the life which sits on a seat, or has last sat there; 0
/// where nobody has. After `monitor` the port keeps what it has to say to a silent peer, and goes on trying to reach
/// it: silence is no loss any more. `take_news` says once what has become of a peer, in order; `no_rank` if there is no
/// news. What is sent to a silent peer, or comes from it, must not use the memory of others for ever: `copy_all` copies
/// all that is on its way to a peer, and `move` lets a part that is arriving go on in other memory; false where it has
/// not begun, or has ended. All notes of a life must have been taken, and its loss or goodbye, before its seat can be
/// taken again; notes of the new life come after the news of its arrival.
template <class P>
concept MonitoringPort =
    MailPort<P> && requires(P& own, const P& port, rank_t peer, typename P::request& begun, byte_span into) {
        { port.incarnation(peer) } -> std::same_as<std::uint64_t>;
        own.monitor();
        own.copy_all(peer);
        { own.move(begun, into) } -> std::same_as<bool>;
        { port.takes_newcomers() } -> std::same_as<bool>;
        { own.take_news() } -> std::same_as<peer_news>;
    };

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_transfers.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The large messages that are being sent or received. A message is sent only after its receiver has posted the
/// receives and asked for it. Every request is answered by as many parts as it asks for; if the message has been
/// withdrawn, the parts are empty.
template <class Port>
class transfers {
  public:
    using request = typename Port::request;
    using node = mail::node<request>;
    using outgoing = mail::outgoing<request>;
    using outbox = mail::outbox<request>;

    transfers(Port& through, outbox& sent) : through_(through), sent_(sent), tags_(ranks(through)) {}

    void set_small(std::size_t piece) { small_ = piece; }
    bool is_small(std::size_t piece) const { return piece <= small_; }
    std::size_t small() const { return small_; }
    bool any() const { return !arriving_.empty() || !leaving_.empty(); }

    /// Decides where the parts of the large pieces arrive: straight in `targets` where no piece straddles two of them
    /// (true), else in memory of the pool (false). The targets, if any, have exactly the message's size.
    ///
    /// The order of the calls for an announced message: `place`, which says where its parts go; `expect`, which posts
    /// their receives; then the note that asks for them, because a part must find its receive. Only then may the pieces
    /// be read from `node::parts`. A message from this rank itself is `copy`-ed after `place` instead.
    bool place(node& n, std::span<const byte_span> targets) {
        n.parts.clear();
        const bool straight = !targets.empty() && place_straight(n, targets);
        if (!straight) place_in_pool(n);
        return straight;
    }

    /// Posts the receives for the parts; returns the tag for the request.
    std::uint32_t expect(node& n) {
        n.data_tag = unused_tag(n.source);
        n.is = node_state::asked;
        n.requests.clear();
        for (const byte_span part : n.parts)
            n.requests.push_back(through_.receive_part(part.data(), part.size(), n.source, n.data_tag));
        arriving_.push_back(&n);
        return n.data_tag;
    }

    /// Copies a message from this rank to itself; false when it has been withdrawn.
    bool copy(node& n) {
        outgoing* const from = sent_.find(n.id);
        if (from == nullptr) return false;
        std::size_t i = 0;
        for_each_part(from->pieces,
                      [&](byte_view part) { std::memcpy(n.parts[i++].data(), part.data(), part.size()); });
        n.is = node_state::complete;
        sent_.close(*from);
        return true;
    }

    /// Sends the parts of message `id`; false when the request does not fit the message.
    bool answer(rank_t peer, std::uint64_t id, std::uint32_t tag, std::uint64_t parts) {
        outgoing* const found = sent_.find(id);
        if (found == nullptr || found->is_moving) return answer_empty(peer, tag, parts), true;
        std::uint64_t has = 0;
        for_each_part(found->pieces, [&](byte_view) { ++has; });
        if (has != parts || found->peer != peer || found->is_unasked) return false;
        found->is_moving = true;
        for_each_part(found->pieces, [&](byte_view part) {
            found->requests.push_back(through_.send_part(part.data(), part.size(), peer, tag));
        });
        leaving_.push_back(found);
        return true;
    }

    /// Calls `arrived(node, withdrawn)` for each message that has arrived; true when a transfer has ended.
    template <class Arrived>
    bool progress(Arrived&& arrived) {
        bool any_ended = false;
        for (std::size_t i = 0; i < leaving_.size();) {
            if (!are_complete(leaving_[i]->requests)) {
                ++i;
                continue;
            }
            if (leaving_[i]->is_open) sent_.close(*leaving_[i]);
            leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
            any_ended = true;
        }
        for (std::size_t i = 0; i < arriving_.size();) {
            node& n = *arriving_[i];
            if (!has_arrived(n)) {
                ++i;
                continue;
            }
            arriving_.erase(arriving_.begin() + static_cast<std::ptrdiff_t>(i));
            n.is = node_state::complete;
            arrived(n, n.withdrawn);
            any_ended = true;
        }
        return any_ended;
    }

    /// Makes room in the pool for all pieces, also the small ones; `node::parts` and `node::pieces` say where.
    void place_whole(node& n) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < n.count; ++i) size += rounded(n.sizes[i]);
        n.body = pool_.take(size);
        n.parts.clear();
        n.pieces = {};
        std::byte* at = n.body.data();
        for (std::size_t i = 0; i < n.count; at += rounded(n.sizes[i++])) {
            n.parts.push_back({at, n.sizes[i]});
            n.pieces.push({at, n.sizes[i]});
        }
    }

    storage_pool& pool() { return pool_; }

    /// Called when the port ends: leaks the memory that it may still use.
    void abandon() noexcept {
        for (node* n : arriving_) {
            for (request& each : n->requests) {
                if (each) through_.cancel(each);
                through_.abandon(each);
            }
            n->body.leak();
        }
        arriving_.clear();
        for (outgoing* sent : leaving_) {
            abandon_all(sent->requests);
            if (!sent->owned.empty())
                new (std::nothrow) buffer(std::move(sent->owned));  // leaked: the port may still read it
        }
        leaving_.clear();
        abandon_all(empties_);
    }

    /// Moves a message that arrives straight in the user's memory into memory of the pool. It never waits; a part that
    /// is already being written can be moved only when its sender has sent it.
    class redirection {
      public:
        redirection(transfers& of, node& n) : of_(of), node_(n), before_(n.parts) {
            node_.leaves = true;
            // Last first: a part that arrives now matches an earlier one.
            for (std::size_t i = before_.size(); i-- > 0;)
                if (node_.requests[i]) of_.through_.cancel(node_.requests[i]);
            node_.parts.clear();
            of_.place_in_pool(node_);
        }
        redirection(const redirection&) = delete;
        redirection& operator=(const redirection&) = delete;
        ~redirection() { node_.leaves = false; }

        /// Tests the parts; true when the user's memory is free.
        bool look() {
            while (next_ < before_.size() && is_out(next_)) ++next_;
            return next_ == before_.size();
        }

      private:
        bool is_out(std::size_t i) {
            auto& request = node_.requests[i];
            const byte_span part = node_.parts[i];
            if (request) {
                const auto end = of_.through_.look(request);
                if constexpr (MonitoringPort<Port>)
                    if (!end && of_.through_.move(request, part)) return true;
                if (!end) return false;
                if (end->cancelled) {
                    request = of_.through_.receive_part(part.data(), part.size(), node_.source, node_.data_tag);
                    return true;
                }
                of_.note_end(node_, end->size);
            }
            std::memcpy(part.data(), before_[i].data(), part.size());
            return true;
        }

        transfers& of_;
        node& node_;
        std::vector<byte_span> before_;
        std::size_t next_ = 0;
    };

  private:
    static std::size_t ranks(const Port& through) { return static_cast<std::size_t>(through.size()); }
    static std::size_t rounded(std::size_t size) {
        return (size + storage::alignment - 1) / storage::alignment * storage::alignment;
    }

    template <class Span, class Visit>
    static void cut(Span piece, Visit&& visit) {
        for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), most_part_bytes)))
            visit(piece.first(std::min(piece.size(), most_part_bytes)));
    }
    template <class Visit>
    void for_each_part(const byte_pieces& pieces, Visit&& visit) const {
        for (const byte_view piece : pieces)
            if (!is_small(piece.size())) cut(piece, visit);
    }

    bool place_straight(node& n, std::span<const byte_span> targets) const {
        std::size_t at = 0, begin = 0, target = 0;  // targets[target] begins at byte `begin` of the message
        for (std::size_t i = 0; i < n.count; at += n.sizes[i++]) {
            if (is_small(n.sizes[i])) continue;
            while (at >= begin + targets[target].size()) begin += targets[target++].size();
            if (at + n.sizes[i] > begin + targets[target].size()) {
                n.parts.clear();
                return false;
            }
            cut(targets[target].subspan(at - begin, n.sizes[i]), [&](byte_span part) { n.parts.push_back(part); });
        }
        return true;
    }

    void place_in_pool(node& n) {
        std::size_t size = 0;
        for (std::size_t i = 0; i < n.count; ++i) size += is_small(n.sizes[i]) ? 0 : rounded(n.sizes[i]);
        n.body = pool_.take(size);
        std::byte* at = n.body.data();
        for (std::size_t i = 0; i < n.count; ++i) {
            if (is_small(n.sizes[i])) continue;
            cut(byte_span(at, n.sizes[i]), [&](byte_span part) { n.parts.push_back(part); });
            at += rounded(n.sizes[i]);
        }
    }

    /// A tag for a transfer from `source`, which no other uses: an old one may still wait for a sender that has gone.
    std::uint32_t unused_tag(rank_t source) {
        std::uint32_t& last = tags_[static_cast<std::size_t>(source)];
        const auto in_use = [&](const node* n) { return n->source == source && n->data_tag == last; };
        do last = last % most_data_tag + 1;
        while (std::any_of(arriving_.begin(), arriving_.end(), in_use));
        return last;
    }

    void answer_empty(rank_t peer, std::uint32_t tag, std::uint64_t parts) {
        for (std::uint64_t i = 0; i < parts; ++i) empties_.push_back(through_.send_part(nullptr, 0, peer, tag));
        if (are_complete(empties_)) empties_.clear();
    }

    void abandon_all(std::vector<request>& requests) const noexcept {
        for (request& each : requests) through_.abandon(each);
        requests.clear();
    }
    bool are_complete(std::vector<request>& requests) const {
        for (request& each : requests)
            if (!through_.is_complete(each)) return false;
        return true;
    }

    /// An empty part: the message was withdrawn, or its sender has gone. No part of another message is empty.
    static void note_end(node& n, std::size_t size) {
        if (size == 0) n.withdrawn = true;
    }

    bool has_arrived(node& n) const {
        if (n.leaves) return false;
        for (std::size_t i = 0; i < n.requests.size(); ++i) {
            if (!n.requests[i]) continue;
            const auto end = through_.look(n.requests[i]);
            if (!end) return false;
            note_end(n, end->size);
        }
        return true;
    }

    Port& through_;
    outbox& sent_;
    std::size_t small_ = 0;
    storage_pool pool_;
    std::vector<std::uint32_t> tags_;
    std::vector<node*> arriving_;
    std::vector<outgoing*> leaving_;
    std::vector<request> empties_;
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_sending.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The sender's part of a post office: what one rank sends at its port, and what it keeps of each peer.
template <class Port>
class sending_desk {
  public:
    using options = typename Port::options;
    using node = mail::node<typename Port::request>;
    using outgoing = mail::outgoing<typename Port::request>;

    Port& through() { return port_; }
    void free() { port_.free(); }
    const options& chosen() const { return chosen_; }
    rank_t rank() const { return port_.rank(); }
    int size() const { return port_.size(); }
    traffic& counted() { return counted_; }

    /// Called when the port ends.
    void abandon() noexcept {
        parcels_.abandon();
        transfers_.abandon();
    }

    /// Posts a borrowed message and returns its id; 0 when the message has been copied.
    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces) {
        const std::size_t size = pieces.size_bytes();
        count_sent(size);
        if (is_lost_to(peer)) return 0;
        if (size <= chosen_.eager_bytes) return send_whole(note::lent, peer, on, pieces, size), 0;
        outgoing& sent = outbox_.open(peer);
        sent.pieces = pieces;
        goes_unasked(peer, size) ? begin(sent, on, size) : announce(note::announce_lent, sent, on);
        return sent.id;
    }
    /// Posts a buffer that is handed over; false when the receiver's mailbox has no room.
    bool post(rank_t peer, channel on, buffer& bytes) {
        std::size_t& outstanding = state_of(peer).outstanding.handed;
        const std::size_t size = bytes.size();
        if (is_lost_to(peer)) {
            count_sent(size);
            buffer().swap(bytes);
            return true;
        }
        if (outstanding != 0 && (outstanding > chosen_.mailbox_bytes || size > chosen_.mailbox_bytes - outstanding))
            return want(peer), false;
        outstanding += size;
        count_sent(size);
        if (size <= chosen_.eager_bytes) {
            send_whole(note::handed, peer, on, byte_view(bytes), size);
            buffer().swap(bytes);
            return true;
        }
        outgoing& sent = outbox_.open(peer);
        sent.owned = std::move(bytes);
        sent.pieces = byte_view(sent.owned);
        announce(note::announce_handed, sent, on);
        return true;
    }
    bool is_done(std::uint64_t id) const { return outbox_.find(id) == nullptr; }
    rank_t receiver_of(std::uint64_t id) const {
        const outgoing* const sent = outbox_.find(id);
        return sent == nullptr ? no_rank : sent->peer;
    }
    /// Withdraws a message; false when it is being sent.
    bool withdraw(std::uint64_t id) {
        outgoing* const sent = outbox_.find(id);
        if (sent == nullptr) return true;
        if (sent->is_moving) return false;
        if (sent->is_unasked) return stop(*sent), true;
        const rank_t peer = sent->peer;
        outbox_.close(*sent);
        tell(peer, {.id = id, .kind = note::withdraw});
        return true;
    }

    void tell(rank_t peer, envelope head, byte_view payload = {}) {
        head.incarnation = incarnation_;
        head.size = static_cast<std::uint32_t>(payload.size());
        if (peer == rank()) return handle(peer, head, payload.data());
        send(peer, head, payload.size(), [&](std::byte* at) {
            if (!payload.empty()) std::memcpy(at, payload.data(), payload.size());
        });
    }
    void tell_others(const envelope& head, byte_view payload = {}) {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank()) tell(peer, head, payload);
    }

    /// Whether only the arrival of a note can change anything.
    bool only_waits_for_notes() const { return !parcels_.any_flying() && !transfers_.any() && unasked_ == 0; }
    /// What is on its way to a silent peer does not use its sender's memory any more.
    void free_memory_for(rank_t peer) {
        if constexpr (MonitoringPort<Port>)
            if (peer != no_rank && at(peer).is_silent) port_.copy_all(peer);
    }
    bool is_away(rank_t peer) const { return at(peer).has_left || at(peer).has_gone; }

  protected:
    /// Bytes of two kinds: of messages that are handed over, and of messages that go unasked.
    struct credit {
        std::size_t handed = 0;
        std::size_t unasked = 0;
    };
    struct peer_state {
        credit outstanding{};          ///< sent by this rank and not known to be taken
        credit owed{};                 ///< taken by this rank, which has not told the peer
        std::size_t came_unasked = 0;  ///< bytes of such messages whose sender has not been told that they are taken
        std::uint32_t life = 0;        ///< counts those that have sat on the seat
        bool want_sent = false;
        bool has_gone = false;  ///< without a farewell, or by an exception, or it is silent
        bool has_left = false;
        bool is_silent = false;     ///< it may be heard again
        bool asks_for_end = false;  ///< it wants to be told when this rank ends
        bool monitors = false;      ///< and goes on without it
        bool wanted = false;
        std::optional<abort_notice> failure{};                            ///< what its body has thrown
        std::vector<outgoing*> unasked{};                                 ///< being sent, in order
        std::vector<unasked_arrival<typename Port::request>> arrivals{};  ///< being received
    };

    explicit sending_desk(const typename Port::place& of) : port_(of), parcels_(port_), transfers_(port_, outbox_) {}
    ~sending_desk() = default;

    /// Handles a note that has arrived, or that this rank sends itself.
    virtual void handle(rank_t source, const envelope& head, const std::byte* payload) = 0;

    void open(const options& chosen, std::uint32_t incarnation) {
        chosen_ = chosen;
        port_.configure(chosen);
        incarnation_ = incarnation;
        parcels_.set_capacity(chosen.eager_bytes);
        transfers_.set_small(chosen.eager_bytes / 8);
        peers_.assign(static_cast<std::size_t>(size()), {});
        unasked_ = 0;
        counted_ = {};
    }

    peer_state& state_of(rank_t peer) { return peers_[static_cast<std::size_t>(peer)]; }
    const peer_state& at(rank_t peer) const { return peers_[static_cast<std::size_t>(peer)]; }
    std::uint64_t life_of(rank_t peer) const {
        if constexpr (MonitoringPort<Port>) return port_.incarnation(peer);
        return 1;
    }

    /// Sends the next note of the first message to each peer; true if there was any.
    bool send_on() {
        bool any = false;
        for (rank_t peer = 0; peer < size(); ++peer) {
            auto& waiting = state_of(peer).unasked;
            if (waiting.empty() || parcels_.flying_to(peer) >= most_flying) continue;
            outgoing& sent = *waiting.front();
            const std::size_t left = sent.pieces.size_bytes() - sent.begun, next = std::min(left, chosen_.eager_bytes);
            send(peer, {.id = sent.id, .kind = note::go_on}, next, [&](std::byte* at) {
                rill::detail::copy_from(sent.pieces, sent.begun, {at, next});
            });
            any = true;
            sent.begun += next;
            if (next != left) continue;
            waiting.erase(waiting.begin());
            --unasked_;
            outbox_.close(sent);
        }
        return any;
    }
    /// Ends a message that goes unasked before all of it has been sent.
    void stop(outgoing& sent) {
        unasked_ -= std::erase(state_of(sent.peer).unasked, &sent);
        tell(sent.peer, {.id = sent.id, .kind = note::withdraw});
        outbox_.close(sent);
    }
    /// Nobody wants a message, or no more of it, unless it has been asked for and is being sent.
    void give_up(outgoing& sent) {
        if (sent.is_moving) return;
        sent.is_unasked ? stop(sent) : outbox_.close(sent);
    }

    options chosen_{};
    std::uint32_t incarnation_ = 0;
    Port port_;
    parcels<Port> parcels_;
    outbox<typename Port::request> outbox_;
    transfers<Port> transfers_;
    std::vector<peer_state> peers_;
    std::size_t unasked_ = 0;  ///< messages that are being sent unasked
    traffic counted_;

  private:
    /// Notes of one message that are on their way at once. Two keep the line busy while a third is made.
    static constexpr int most_flying = 2;

    void count_sent(std::size_t size) { counted_ += {.messages_sent = 1, .bytes_sent = size}; }
    /// Whether nothing reaches the peer any more, or nobody has taken its seat.
    bool is_lost_to(rank_t peer) const { return (at(peer).has_gone && !at(peer).is_silent) || life_of(peer) == 0; }

    /// Whether a borrowed message is sent without being asked for. It is if the receiver's memory for such messages has
    /// room for all of it, so that it never stops half-way.
    bool goes_unasked(rank_t peer, std::size_t size) {
        if (peer == rank() || !chosen_.sends_unasked.value_or(port_.neighbours() != this->size())) return false;
        std::size_t& outstanding = state_of(peer).outstanding.unasked;
        if (size > chosen_.mailbox_bytes) return false;
        if (size > chosen_.mailbox_bytes - outstanding) return want(peer), false;
        outstanding += size;
        return true;
    }
    /// Sends the sizes of the pieces at once, so that messages stay in order, and bytes if no other message is under
    /// way.
    void begin(outgoing& sent, channel on, std::size_t size) {
        peer_state& to = state_of(sent.peer);
        const std::size_t room = to.unasked.empty() ? chosen_.eager_bytes - announcement::table : 0;
        sent.is_unasked = true;
        sent.begun = std::min(room, size - 1);
        send(sent.peer, head_of(note::begin, sent, on), announcement::table + sent.begun, [&](std::byte* at) {
            announcement::write_sizes(sent.pieces, at);
            rill::detail::copy_from(sent.pieces, 0, {at + announcement::table, sent.begun});
        });
        to.unasked.push_back(&sent);
        ++unasked_;
    }
    void announce(note kind, outgoing& sent, channel on) {
        const std::size_t small = transfers_.small();
        send(sent.peer, head_of(kind, sent, on), announcement::size_bytes(sent.pieces, small),
             [&](std::byte* at) { announcement::write(sent.pieces, small, at); });
    }
    static envelope head_of(note kind, const outgoing& sent, channel on) {
        return {.context = on.context,
                .id = sent.id,
                .tag = on.tag,
                .kind = kind,
                .pieces = static_cast<std::uint8_t>(sent.pieces.count())};
    }
    void send_whole(note kind, rank_t peer, channel on, const byte_pieces& pieces, std::size_t size) {
        send(peer, {.context = on.context, .tag = on.tag, .kind = kind}, size, [&](std::byte* at) {
            rill::detail::copy_from(pieces, 0, {at, size});
        });
    }
    /// Asks for credit, once until some comes.
    void want(rank_t peer) {
        if (!std::exchange(state_of(peer).want_sent, true)) tell(peer, {.kind = note::want});
    }
    /// Sends a note whose content, of `size` bytes, `write(at)` writes.
    template <class Write>
    void send(rank_t peer, envelope head, std::size_t size, Write&& write) {
        head.incarnation = incarnation_;
        head.size = static_cast<std::uint32_t>(size);
        parcel<typename Port::request>& made = parcels_.compose(size);
        write(made.payload());
        if (peer == rank())
            handle(peer, head, made.payload());
        else
            parcels_.send(head, peer);
    }
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_receiving.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The receiver's part of a post office: the messages that have arrived or been announced, and those that are expected.
template <class Port>
class receiving_desk : public sending_desk<Port> {
    using base = sending_desk<Port>;

  public:
    using base::rank, base::size, base::tell;
    using typename base::node, typename base::options;

    /// Begins the work for an endpoint. `incarnation` is its number, equal on all ranks; notes with older ones are
    /// ignored.
    void open(const options& chosen, std::uint32_t incarnation) {
        base::open(chosen, incarnation);
        most_eager_bytes_ = std::max(most_eager_bytes_, chosen.eager_bytes);
        if (landing_.size() < landing_size()) landing_ = storage(landing_size());
        expected_.clear();
        control_ = {};
        watch_ = rill::detail::lookout(size());
        known_open_ = every_context;
    }
    /// Ends the work for the endpoint and waits for nobody: transfers in progress continue, the rest is dropped.
    void close() noexcept {
        outbox_.for_each_open([&](outgoing& sent) {
            if (!sent.is_moving) outbox_.close(sent);
        });
        inbox_.for_each([&](node& left) { discard(left); });
        for (peer_state& peer : peers_) peer.unasked.clear();
        unasked_ = 0;
        landings_.clear();
        transfers_.pool().clear();
    }
    control& knowledge() { return control_; }

    /// Takes the earliest message from any of the peers that has arrived; else asks for the announced ones: null.
    node* take(std::span<const rank_t> peers, channel on) {
        node* best = nullptr;
        for (const rank_t peer : peers)
            if (node* n = inbox_.first(peer, on);
                n != nullptr && n->is == node_state::complete && (best == nullptr || best->arrival > n->arrival))
                best = n;
        if (best == nullptr) best = ask_first(peers, on);
        if (best != nullptr) taken(*best);
        return best;
    }
    /// Takes the latest message that has arrived or been announced, and drops all older ones; null while it has not
    /// arrived. A message that has been asked for is not dropped for later ones, so that repeated polls succeed.
    node* take_latest(std::span<const rank_t> peers, channel on) {
        node *newest = nullptr, *chosen = nullptr;
        const auto is_later = [](const node& n, const node* than) {
            return than == nullptr || n.arrival > than->arrival;
        };
        for (const rank_t peer : peers)
            for (node* n = inbox_.first(peer, on); n != nullptr; n = inbox_.next(*n)) {
                if (is_later(*n, newest)) newest = n;
                if (n->latest && is_later(*n, chosen)) chosen = n;
            }
        if (newest == nullptr) return nullptr;
        if (chosen == nullptr || newest->is == node_state::complete) chosen = newest;
        for (const rank_t peer : peers)
            for (node* n = inbox_.first(peer, on); n != nullptr;)
                if (node* const seen = std::exchange(n, inbox_.next(*n)); seen != newest && seen != chosen) drop(*seen);
        chosen->latest = true;
        if (chosen->is == node_state::announced && !ask(*chosen)) return nullptr;
        if (chosen->is != node_state::complete) return nullptr;
        taken(*chosen);
        return chosen;
    }
    /// Takes the first message from `peer` for `receive_into`. It may still have to arrive; `node::straight` says
    /// whether it arrives straight in `targets`.
    node* claim(rank_t peer, channel on, std::span<const byte_span> targets, std::size_t room) {
        node* const n = inbox_.first(peer, on);
        if (n == nullptr) return nullptr;
        if (n->is == node_state::announced && n->size == room && n->source != rank()) {
            inbox_.unlink(*n);
            n->claimed = true;
            ask(*n, targets);
            return n;
        }
        if (n->is == node_state::announced && !ask(*n)) return nullptr;
        if (n->is != node_state::complete) return nullptr;
        inbox_.unlink(*n);
        return n;
    }
    /// Gives back a claimed message in any state. One that arrives straight must have been redirected before.
    void unclaim(node& n) {
        if (n.is_gone()) return release(n);
        if (n.straight && n.is == node_state::complete) assemble(n);
        n.straight = n.claimed = false;
        inbox_.put_back(n);
    }
    /// Completes the receive of a claimed message that has arrived.
    void accept(node& n) {
        repay(n);
        this->counted_ += {.messages_received = 1, .bytes_received = n.size};
    }
    typename transfers<Port>::redirection redirect(node& n) { return {transfers_, n}; }

    /// Asks for the next message of the channel that is not yet expected, as soon as it is announced.
    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        const expectation next(peer, on, targets);
        if (node* const n = inbox_.first_unexpected(peer, on))
            fulfil(*n, next);
        else
            expected_.push_back(next);
    }
    /// Removes all expectations of the channel, except of messages that have been asked for.
    void forget(channel on) {
        std::erase_if(expected_, [=](const expectation& e) { return e.on == on; });
    }
    /// Takes a message of the channel that arrives, or has arrived, in the targets of its expectation out of its list;
    /// null where there is none.
    node* take_placed(channel on) {
        node* const found = inbox_.find([=](const node& n) { return n.placed && n.on == on; });
        if (found != nullptr) {
            inbox_.unlink(*found);
            repay(*found);
        }
        return found;
    }
    /// Releases a message that is in no list and that nobody will take, now or when it has arrived.
    void dispose(node& n) noexcept {
        if (n.is == node_state::asked) {
            n.doomed = true;
            return;
        }
        if (n.is == node_state::begun)
            for (auto& arrival : state_of(n.source).arrivals)
                if (arrival.into == &n) arrival.into = nullptr;
        release(n);
    }
    /// Called by the receiver when it will not read the message again.
    void release(node& n) noexcept {
        landings_.put(std::move(n.note));
        transfers_.pool().put(std::move(n.body));
        inbox_.recycle(n);
    }

    void close_context(std::uint64_t context) {
        std::erase_if(expected_, [=](const expectation& e) { return e.on.context == context; });
        control_.calls.close(context);
        control_.forget(context);
        watch_.forget(context);
        known_open_ = every_context;
        inbox_.for_each([&](node& n) {
            if (n.on.context == context) drop(n);
        });
    }

  protected:
    using base::chosen_, base::outbox_, base::peers_, base::state_of, base::transfers_, base::unasked_;
    using typename base::credit, typename base::outgoing, typename base::peer_state;

    explicit receiving_desk(const typename Port::place& of) : base(of), inbox_(size()), watch_(size()) {}
    ~receiving_desk() = default;

    void deliver(rank_t source, const envelope& head, const std::byte* payload) {
        const channel on{.context = head.context, .tag = head.tag};
        node& n = inbox_.append(source, on);
        n.handed = head.kind == note::handed || head.kind == note::announce_handed;
        n.id = head.id;
        n.life = state_of(source).life;
        n.count = head.pieces;
        if (head.kind == note::lent || head.kind == note::handed) {
            keep_payload(n, payload, head.size);
            n.size = head.size;
            n.pieces = byte_view(n.payload(), n.size);
        } else {
            n.size = 0;
            for (std::size_t i = 0; i < n.count; ++i) n.size += n.sizes[i] = announcement::size_of_piece(payload, i);
            if (head.kind == note::begin) {
                take_beginning(n, byte_view(payload, head.size).subspan(announcement::table));
            } else {
                keep_payload(n, payload, head.size);
                n.is = node_state::announced;
            }
        }
        if (watch_.is_fenced(source)) return drop(n);
        if (head.context != known_open_) {
            if (control_.calls.is_closed(head.context)) return drop(n);
            known_open_ = head.context;
        }
        const auto is_it = [&](const expectation& e) { return e.peer == source && e.on == on; };
        const auto found = std::find_if(expected_.begin(), expected_.end(), is_it);
        if (found == expected_.end()) return;
        const expectation by = *found;
        expected_.erase(found);
        fulfil(n, by);
    }
    /// Takes the next bytes of a message that comes unasked; false where it has not begun or is shorter.
    bool take_more(rank_t source, std::uint64_t id, byte_view content) {
        auto& arrivals = state_of(source).arrivals;
        const auto found =
            std::find_if(arrivals.begin(), arrivals.end(), [=](const auto& each) { return each.id == id; });
        if (found == arrivals.end() || found->left < content.size()) return false;
        node* const n = found->into;
        if (n != nullptr) rill::detail::copy_across(content, n->parts, n->size - found->left);
        found->left -= content.size();
        if (found->left != 0) return true;
        if (n != nullptr) n->is = node_state::complete;
        arrivals.erase(found);
        return true;
    }
    /// The rest of a message that comes unasked will not come.
    void take_end(rank_t source, std::uint64_t id) {
        auto& arrivals = state_of(source).arrivals;
        const auto found =
            std::find_if(arrivals.begin(), arrivals.end(), [=](const auto& each) { return each.id == id; });
        if (found == arrivals.end()) return;
        if (node* const n = found->into; n != nullptr) {
            repay(*n);
            discard(*n);
        }
        arrivals.erase(found);
    }
    /// Ends what stands for messages from and to a peer that nothing more comes from, and whose port has ended the
    /// rest. Messages that are here can still be taken.
    void forsake(rank_t peer) {
        peer_state& of = state_of(peer);
        unasked_ -= of.unasked.size();
        of.unasked.clear();
        outbox_.for_each_open([&](outgoing& sent) {
            if (sent.peer == peer && !sent.is_moving) outbox_.close(sent);
        });
        inbox_.for_each_of(peer, [&](node& n) {
            if (n.is == node_state::announced || n.is == node_state::begun) discard(n);
        });
        of.arrivals.clear();
        of.outstanding = of.owed = {};
        of.came_unasked = 0;
        of.want_sent = of.wanted = false;
        ++of.life;
    }
    void ended(node& n, bool withdrawn) {
        if (n.doomed) return release(n);
        if (!withdrawn) return assemble(n);
        if (n.claimed) return;
        inbox_.unlink(n);
        release(n);
    }
    void drop(node& n) {
        repay(n);
        if (n.is == node_state::announced || n.is == node_state::begun)
            tell(n.source, {.id = n.id, .kind = note::drop});
        discard(n);
    }
    void discard(node& n) noexcept {
        inbox_.unlink(n);
        dispose(n);
    }
    void pay(rank_t peer) {
        peer_state& to = state_of(peer);
        if (to.owed.handed + to.owed.unasked == 0) return;
        to.wanted = false;
        const credit paid = std::exchange(to.owed, {});
        to.came_unasked -= paid.unasked;
        tell(peer, {.context = paid.unasked, .id = paid.handed, .kind = note::credit});
    }

    /// Large enough for notes of earlier endpoints, which may still arrive.
    std::size_t landing_size() const { return storage::alignment + most_eager_bytes_; }

    inbox<typename Port::request> inbox_;
    storage landing_;  ///< of the next note
    control control_;
    rill::detail::lookout watch_;

  private:
    /// A message that this rank will receive, and the memory where it may be put.
    struct expectation {
        rank_t peer = no_rank;
        channel on{};
        byte_span targets[byte_pieces::most]{};
        std::size_t count = 0;

        expectation(rank_t from, channel which, std::span<const byte_span> places)
            : peer(from), on(which), count(places.size() <= byte_pieces::most ? places.size() : 0) {
            std::copy_n(places.begin(), count, targets);
        }

        std::span<const byte_span> places() const { return {targets, count}; }
        bool has_room_for(std::size_t size) const { return count != 0 && size_bytes(places()) == size; }
    };

    void keep_payload(node& n, const std::byte* payload, std::size_t count) {
        if (count <= node::inside) {
            if (count != 0) std::memcpy(n.small, payload, count);
            return;
        }
        if (payload == landing_.data() + storage::alignment) {
            n.note = std::exchange(landing_, landings_.take(landing_size()));
            return;
        }
        n.note = landings_.take(landing_size());
        std::memcpy(n.note.data() + storage::alignment, payload, count);
    }
    /// Asks the sender for an announced message; false when it had been withdrawn, and is gone.
    bool ask(node& n, std::span<const byte_span> targets = {}) {
        n.straight = transfers_.place(n, targets);
        if (n.source == rank()) {
            n.withdrawn = !transfers_.copy(n);
            return ended(n, n.withdrawn), !n.withdrawn;
        }
        const std::uint32_t tag = transfers_.expect(n);
        tell(n.source, {.context = n.parts.size(), .id = n.id, .tag = tag, .kind = note::ask});
        if (!n.straight) return true;
        assemble(n);  // the small pieces are here; the large ones will arrive in the targets
        for (std::size_t i = 0, at = 0; i < n.count; at += n.sizes[i++])
            if (transfers_.is_small(n.sizes[i])) rill::detail::copy_across(n.pieces[i], targets, at);
        return true;
    }
    /// Asks for an expected message before anybody waits for it.
    void fulfil(node& n, const expectation& by) {
        n.expected = true;
        if (n.is != node_state::announced) return;
        const bool fits = by.has_room_for(n.size) && n.source != rank();
        if (ask(n, fits ? by.places() : std::span<const byte_span>{})) n.placed = std::exchange(n.straight, false);
    }
    /// Asks for the first message of each peer that is only announced. Returns one that is here at once, which only a
    /// message from this rank itself can be; else null.
    node* ask_first(std::span<const rank_t> peers, channel on) {
        node* here = nullptr;
        for (const rank_t peer : peers) {
            node* const n = inbox_.first(peer, on);
            if (n == nullptr || n->is != node_state::announced) continue;
            if (ask(*n) && n->is == node_state::complete) here = n;
        }
        return here;
    }
    /// Sets `pieces` of an announced message to where they lie.
    void assemble(node& n) {
        const std::byte* content = n.payload() + announcement::table;
        n.pieces = {};
        std::size_t part = 0;
        for (std::size_t i = 0; i < n.count; ++i) {
            if (transfers_.is_small(n.sizes[i])) {
                n.pieces.push({content, n.sizes[i]});
                content += announcement::aligned(n.sizes[i]);
                continue;
            }
            n.pieces.push({n.parts[part].data(), n.sizes[i]});
            for (std::size_t left = n.sizes[i]; left > 0; left -= n.parts[part++].size()) {
            }
        }
    }
    void taken(node& n) {
        inbox_.unlink(n);
        accept(n);
    }
    /// Makes room for a message that comes unasked; `content`: its first bytes.
    void take_beginning(node& n, byte_view content) {
        n.unasked = true;
        n.is = node_state::begun;
        transfers_.place_whole(n);
        state_of(n.source).came_unasked += n.size;
        state_of(n.source).arrivals.push_back({.id = n.id, .left = n.size, .into = &n});
        take_more(n.source, n.id, content);
    }
    /// Returns credit for a message to its sender, in lumps, or at once where the sender waits for it.
    void repay(const node& n) {
        if (!n.handed && !n.unasked) return;
        peer_state& from = state_of(n.source);
        if (n.life != from.life) return;
        if (n.source == rank()) {
            from.outstanding.handed -= n.size;
            return;
        }
        std::size_t& owed = n.handed ? from.owed.handed : from.owed.unasked;
        owed += n.size;
        if (from.wanted || owed >= chosen_.mailbox_bytes / 4) pay(n.source);
    }

    std::uint64_t known_open_ = every_context;
    std::size_t most_eager_bytes_ = 0;   ///< the largest value that any endpoint has chosen
    std::vector<expectation> expected_;  ///< those whose messages have neither arrived nor been announced, in order
    storage_pool landings_;
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_post_office.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Handles one rank's messages and notes, sent and received. It never waits. It lives as long as its port, so
/// that the next endpoint on the same processes finishes the transfers that an endpoint leaves behind.
///
/// What stands here are the notes of the control channel: what ends contexts, who has entered which call, and what
/// becomes of the peers.
template <class Port>
class post_office final : public receiving_desk<Port> {
    using base = receiving_desk<Port>;

  public:
    using base::is_away, base::rank, base::size, base::tell, base::tell_others;
    using typename base::node;

    explicit post_office(const typename Port::place& of) : base(of) {}

    /// Advances all transfers and handles at most one note; false when nothing has happened. A port that `wakes` is
    /// asked whether anything has come only where it `looks`.
    bool progress(bool looks = true) {
        if constexpr (Port::wakes)
            if (looks) port_.look();
        bool moved = parcels_.any_flying() && parcels_.progress();
        if (unasked_ != 0) moved |= send_on();
        if (transfers_.any()) moved |= transfers_.progress([this](node& n, bool withdrawn) { ended(n, withdrawn); });
        constexpr std::size_t lead = parcel<typename Port::request>::lead;
        std::byte* const landed = landing_.data() + lead;
        if (hear_news()) return true;
        const received_note note = port_.receive_note(landed, landing_.size() - lead);
        if (note.source == no_rank) return mourn() || hear_goodbye() || judge() || moved;
        envelope head;
        if (note.size >= sizeof head) std::memcpy(&head, landed, sizeof head);
        if (note.size != sizeof head + head.size) refuse(note.source, head);
        handle(note.source, head, landing_.data() + storage::alignment);
        return true;
    }

    /// Throws `peer_failure` where none of the peers will do any more what this rank waits for on a channel: all have
    /// gone, or have left and no deadline would end the wait.
    void require_any(std::span<const rank_t> peers, channel on, deadline until) const {
        const auto is_gone = [this](rank_t peer) { return at(peer).has_gone; };
        const auto is_over = [this](rank_t peer) { return is_away(peer); };
        if (peers.empty() || !std::all_of(peers.begin(), peers.end(), is_over) || watch_.is_watched(on)) return;
        const rank_t first = peers.front();
        if (std::all_of(peers.begin(), peers.end(), is_gone)) {
            if (watch_.is_open(on.context)) return;
            abort_notice notice = at(first).failure.value_or(notice_of_loss(first));
            notice.context = on.context;
            throw_error(notice);
        }
        if (!until.is_never()) return;
        throw_error({.context = on.context,
                     .culprit = first,
                     .reason = text_of({"rank ", first, " has left, and rank ", rank(), " waits for it"})});
    }
    /// The same of a wait for messages, in a context that is monitored.
    void require_coming(std::span<const rank_t> peers, channel on) const {
        require_heard(peers, on);
        if (watch_.waits_in_vain(peers, on)) throw_error(rill::detail::notice_of_ends(rank(), peers, on));
    }
    /// Throws `peer_failure` where a wait in a context that is monitored is for peers that are silent.
    void require_heard(std::span<const rank_t> peers, channel on) const {
        if (watch_.waits_for_silent(peers, on)) throw_error(rill::detail::notice_of_silence(rank(), peers, on));
    }

    // See `MonitoredTransport`.

    void monitor(channel on) {
        if (!control_.monitors) {
            control_.begin_to_monitor();
            port_.monitor();
            tell_others({.kind = note::monitor});
        }
        watch_.watch(on);
        for (rank_t peer = 0; peer < size(); ++peer)
            if (watch_.has_ended(peer)) say(peer, on, peer_change::ended);
    }
    /// The conversation goes on: what arrives is dropped.
    void fence(rank_t peer, std::uint64_t incarnation) {
        if (incarnation == 0 || incarnation != life_of(peer)) return;
        watch_.fence(peer);
        inbox_.for_each_of(peer, [&](node& n) { drop(n); });
    }

    // What ends contexts, and the calls of others.

    /// The rank that says which notice was the first: the lowest that is there.
    rank_t judging() const {
        rank_t lowest = 0;
        while (lowest != rank() && is_away(lowest)) ++lowest;
        return lowest;
    }
    /// Declares one of the reports of a context, of which there must be one, as what ended it, and tells all ranks.
    void decide(std::uint64_t context) {
        const abort_notice first = control_.foremost_report(context);
        control_.learn(first);
        tell_others({.kind = note::verdict}, packed_notice(first).view());
    }
    /// Tells those who have asked what has been entered by now: the call in question, or a later one meanwhile, or that
    /// neither will ever be.
    void answer_questions(std::uint64_t context) {
        const auto answered = [&](const control::question& asked) {
            if (asked.context != context) return false;
            auto entered = control_.calls.entered_or_later(context, asked.number);
            if (!entered && control_.has_departed) entered = {.number = asked.number, .kind = operation::departure};
            if (!entered) return false;
            tell(asked.peer, {.context = context, .kind = note::answer},
                 {reinterpret_cast<const std::byte*>(&*entered), sizeof(call_signature)});
            return entered->number == asked.number;
        };
        std::erase_if(control_.questions, answered);
    }

    // The end of a run.

    /// The body of this rank has returned: it enters nothing more.
    void depart() {
        control_.has_departed = true;
        const std::vector<control::question> asked = control_.questions;
        for (const control::question& each : asked) answer_questions(each.context);
    }
    /// This rank has ended. The rounds of leaving need all of the ranks: where some may come or be lost, each tells
    /// each.
    void leave() {
        control_.has_left = true;
        control_.any_failed |= control_.failure.has_value();
        for (rank_t peer = 0; peer < size(); ++peer)
            if (state_of(peer).asks_for_end) tell_own_end(peer);
        if (takes_newcomers() && !control_.monitors) tell_others({.id = 1, .kind = note::monitor});
        go_on_leaving();
    }
    /// Those that monitor go on after a failure, and are not waited for.
    bool have_all_left(bool after_failure) const {
        if (!control_.has_left) return false;
        if (takes_newcomers()) return nobody_is_left(after_failure);
        if (control_.monitors && any_is_away() && nobody_is_left(after_failure)) return true;
        for (int round = 0; round < leaving_rounds(); ++round)
            if (!is_heard(round) && !(after_failure && at(below(round)).monitors)) return false;
        return true;
    }
    /// Whether a failure of this rank ends nobody else: the others monitor, or are away.
    bool do_all_others_go_on() const {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank() && life_of(peer) != 0 && !is_away(peer) && !at(peer).monitors) return false;
        return true;
    }
    bool takes_newcomers() const {
        if constexpr (MonitoringPort<Port>) return port_.takes_newcomers();
        return false;
    }
    /// Lets the port notice it when a rank goes that this one waits for.
    void watch_leaving() {
        for (int round = 0; round < leaving_rounds(); ++round)
            if (!is_heard(round)) port_.watch(below(round));
    }

  private:
    using base::at, base::chosen_, base::control_, base::inbox_, base::incarnation_, base::landing_, base::outbox_;
    using base::deliver, base::discard, base::drop, base::ended, base::forsake, base::give_up, base::life_of, base::pay;
    using base::parcels_, base::peers_, base::port_, base::transfers_, base::unasked_, base::watch_;
    using base::send_on, base::state_of, base::take_end, base::take_more;
    using typename base::outgoing, typename base::peer_state;

    void handle(rank_t source, const envelope& head, const std::byte* payload) override {
        if (head.incarnation != incarnation_ && head.kind != note::ask) return;
        if (!is_whole(head, payload, transfers_.small()) || !may_say(source, head)) refuse(source, head);
        peer_state& peer = state_of(source);
        switch (head.kind) {
            case note::lent:
            case note::handed:
            case note::announce_lent:
            case note::announce_handed: return deliver(source, head, payload);
            case note::begin:
                if (announcement::size_of_pieces(payload, head.pieces) > chosen_.mailbox_bytes - peer.came_unasked)
                    refuse(source, head);
                return deliver(source, head, payload);
            case note::go_on:
                if (!take_more(source, head.id, {payload, head.size})) refuse(source, head);
                return;
            case note::ask:
                if (!transfers_.answer(source, head.id, head.tag, head.context)) refuse(source, head);
                return;
            case note::withdraw:
                take_end(source, head.id);
                return inbox_.for_each_of(source, [&](node& n) {
                    if (n.id == head.id && n.is == node_state::announced) discard(n);
                });
            case note::drop:
                if (outgoing* const sent = outbox_.find(head.id); sent != nullptr) give_up(*sent);
                return;
            case note::credit:
                if (head.id > peer.outstanding.handed || head.context > peer.outstanding.unasked) refuse(source, head);
                peer.outstanding.handed -= head.id;
                peer.outstanding.unasked -= head.context;
                peer.want_sent = false;
                return;
            case note::want: peer.wanted = true; return pay(source);
            default: return handle_control(source, head, payload);
        }
    }
    [[noreturn]] void refuse(rank_t source, const envelope& head) const {
        throw protocol_error(abort_notice{
            .context = every_context,
            .kind = failure::protocol,
            .culprit = source,
            .reason = "rank " + std::to_string(source) + " sent rank " + std::to_string(rank()) + " a note of kind " +
                      std::to_string(static_cast<int>(head.kind)) + ", with " + std::to_string(head.size) +
                      " bytes, which this build does not know: all ranks must run the same program"});
    }
    void handle_control(rank_t source, const envelope& head, const std::byte* payload) {
        switch (head.kind) {
            case note::report: return hear(source, packed_notice::unpack({payload, head.size}));
            case note::verdict: return hear_end(packed_notice::unpack({payload, head.size}), head, payload);
            case note::question:
                control_.remember({.peer = source, .context = head.context, .number = head.id});
                return answer_questions(head.context);
            case note::answer: {
                call_signature call;
                std::memcpy(&call, payload, sizeof call);
                return control_.learn(source, head.context, call);
            }
            case note::monitor:
                state_of(source).asks_for_end = true;
                state_of(source).monitors |= head.id == 0;
                if (control_.has_left) tell_own_end(source);
                return;
            case note::ended:
                if (head.size != 0) hear_failure(source, packed_notice::unpack({payload, head.size}));
                return tell_end(source);
            case note::loss: return hear_end(notice_of_loss(static_cast<rank_t>(head.id)), head, payload);
            default:
                control_.rounds_heard |= std::uint32_t{1} << (head.id / 2);
                control_.any_failed |= head.id % 2 != 0;
                go_on_leaving();
        }
    }
    /// Whether `source` may send this rank such a note.
    bool may_say(rank_t source, const envelope& head) const {
        if (head.kind == note::loss) return head.id < static_cast<unsigned>(size());
        return head.kind != note::leave || (head.id / 2 < static_cast<unsigned>(leaving_rounds()) &&
                                            source == below(static_cast<int>(head.id / 2)));
    }

    // What ends contexts.

    /// Stores a report of an abort. If the context has already ended here, answers with the notice that ended it: the
    /// rank that sent this notice may have died before it told `source`.
    void hear(rank_t source, const abort_notice& report) {
        const abort_notice* const first = control_.first_before(report);
        if (first == nullptr)
            control_.reports.push_back({source, report});
        else
            tell(source, {.kind = note::verdict}, packed_notice(*first).view());
    }
    /// Stores what has ended contexts, before a wait throws it. Where it is the first that this rank hears, it goes on
    /// to those that this rank tells of its end: who has decided or noticed it may not reach all others.
    void hear_end(const abort_notice& notice, const envelope& head, const std::byte* payload) {
        const bool is_known = control_.first_before(notice) != nullptr;
        control_.learn(notice);
        if (is_known || control_.first_before(notice) == nullptr) return;
        for (int round = 0; round < leaving_rounds(); ++round)
            tell(below(round, -1), {.id = head.id, .kind = head.kind}, {payload, head.size});
    }
    /// Decides on the judging rank which reports were the first; true when there were any. Called only when no note is
    /// left to read: if this rank has not read notes for long, another one may have decided, and its verdict must be
    /// read first.
    bool judge() {
        if (control_.reports.empty() || judging() != rank()) return false;
        while (!control_.reports.empty()) decide(control_.reports.front().notice.context);
        return true;
    }

    // What becomes of the peers.

    /// True when a peer has gone. Called only when no note is left to read, since a verdict of before comes first.
    /// Where this rank does not monitor, that ends all contexts. Others hear of it also where another failure has ended
    /// this rank's contexts: the peer may have been the one that told of that, and may not have told all. The loss is
    /// known here even where telling it throws.
    bool mourn() {
        const rank_t gone = port_.take_loss();
        if (gone == no_rank) return false;
        const abort_notice notice = notice_of_loss(gone);
        const abort_notice* const first = control_.first_before(notice);
        const bool is_news = first == nullptr || !rill::detail::same_failure(*first, notice);
        state_of(gone).has_gone = true;
        forsake(gone);
        control_.learn(notice);
        control_.any_failed |= !control_.monitors;
        tell_end(gone);
        if (is_news) tell_loss(gone);
        go_on_leaving();
        return true;
    }
    /// Who monitors finds out by itself.
    void tell_loss(rank_t gone) {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank() && !at(peer).asks_for_end)
                tell(peer, {.id = static_cast<std::uint64_t>(gone), .kind = note::loss});
    }
    /// The body of a peer has thrown. The peer asks for nothing more.
    void hear_failure(rank_t peer, const abort_notice& failure) {
        peer_state& of = state_of(peer);
        of.has_gone = true;
        of.failure = failure;
        outbox_.for_each_open([&](outgoing& sent) {
            if (sent.peer == peer) give_up(sent);
        });
        go_on_leaving();
    }
    /// Learns that a peer has left; true when one has. Called only when no note is left to read, and after the
    /// transfers: what the peer has said before is here.
    bool hear_goodbye() {
        const rank_t left = port_.take_goodbye();
        if (left == no_rank) return false;
        state_of(left).has_left = true;
        tell_end(left);
        go_on_leaving();
        return true;
    }
    /// Learns what else has become of a peer; true when there was news.
    bool hear_news() {
        if constexpr (MonitoringPort<Port>) {
            const peer_news news = port_.take_news();
            if (news.peer == no_rank) return false;
            peer_state& of = state_of(news.peer);
            if (news.change == peer_change::arrived) {
                forsake(news.peer);
                of = {.life = of.life};
                watch_.begins(news.peer);
                if (control_.monitors || control_.has_left)
                    tell(news.peer, {.id = control_.monitors ? 0U : 1U, .kind = note::monitor});
            } else {
                of.has_gone = of.is_silent = news.change == peer_change::silent;
                watch_.be_silent(news.peer, of.is_silent);
                if (of.is_silent) tell_loss(news.peer);
            }
            tell_change(news.peer, news.change);
            return true;
        }
        return false;
    }
    /// Nothing more comes of this life of a peer.
    void tell_end(rank_t peer) {
        if (watch_.ends(peer)) tell_change(peer, peer_change::ended);
    }
    void tell_change(rank_t of, peer_change change) {
        for (const channel on : watch_.channels()) say(of, on, change);
    }
    void say(rank_t of, channel on, peer_change change) {
        const buffer bytes = to_message({.kind = change, .incarnation = life_of(of)});
        deliver(of,
                {.context = on.context,
                 .tag = on.tag,
                 .size = static_cast<std::uint32_t>(bytes.size()),
                 .kind = note::lent},
                bytes.data());
    }
    /// Whether all others have ended or are silent.
    bool nobody_is_left(bool after_failure) const {
        for (rank_t peer = 0; peer < size(); ++peer) {
            if (peer == rank() || life_of(peer) == 0 || (after_failure && at(peer).monitors)) continue;
            if (!watch_.has_ended(peer) && !at(peer).is_silent) return false;
        }
        return true;
    }
    bool any_is_away() const {
        return std::any_of(peers_.begin(), peers_.end(),
                           [](const peer_state& of) { return of.has_gone || of.has_left; });
    }

    // The rounds in which all ranks learn that all have ended.

    void tell_own_end(rank_t peer) {
        if (!control_.failure) return tell(peer, {.kind = note::ended});
        tell(peer, {.kind = note::ended}, packed_notice(*control_.failure).view());
    }
    int leaving_rounds() const { return static_cast<int>(std::bit_width(static_cast<unsigned>(size() - 1))); }
    /// The rank 2^round below this one, or above it.
    rank_t below(int round, int sign = 1) const {
        return static_cast<rank_t>((rank() + std::int64_t{size()} - sign * (std::int64_t{1} << round)) % size());
    }
    /// Whether the rank that tells this one in a round has done so, or is not there any more.
    bool is_heard(int round) const { return (control_.rounds_heard >> round & 1) != 0 || is_away(below(round)); }
    /// After as many rounds as the number of ranks has bits, each rank knows that all have ended.
    void go_on_leaving() {
        for (int& told = control_.rounds_told;
             control_.has_left && told < leaving_rounds() && (told == 0 || is_heard(told - 1)); ++told)
            tell(below(told, -1),
                 {.id = 2U * static_cast<unsigned>(told) + (control_.any_failed ? 1U : 0U), .kind = note::leave});
    }
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_turns.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Set while this thread runs an activity.
inline thread_local const activity_state* own_activity = nullptr;

/// A mutex if several threads may call the endpoint, otherwise a no-op.
class optional_mutex {
  public:
    void enable(bool on) { on_ = on; }
    bool is_enabled() const { return on_; }
    void lock() {
        if (on_) mutex_.lock();
    }
    void unlock() {
        if (on_) mutex_.unlock();
    }

  private:
    bool on_ = false;
    std::mutex mutex_;
};

/// What a wait does between two polls: nothing at first, later it gives its core away or sleeps.
///
/// It does not give the core away after each poll. A port looks first and makes progress then, so that a
/// message is found one poll after its arrival, and Open MPI may itself give the core away at the end of a poll.
class turns {
  public:
    /// `neighbours`: the number of ranks that share the cores, including this one. A `nap` of 0: it never sleeps.
    void configure(int spins, duration nap, int neighbours) {
        spins_ = spins;
        nap_ = nap;
        neighbours_ = neighbours;
    }
    /// Counts activities that are threads. Every neighbour is assumed to run as many as this rank.
    void threads_changed(int by) { threads_.fetch_add(by, std::memory_order_relaxed); }

    void pass(std::int64_t looks, bool sleeps) const {
        const std::int64_t spins = is_crowded() ? 0 : spins_;
        if (looks < spins) return;
        const bool naps = sleeps || (own_activity != nullptr && looks > spins + spins_);
        if (naps && nap_.ns > 0)
            std::this_thread::sleep_for(std::chrono::nanoseconds(nap_.ns));
        else if (looks % looks_per_yield == looks_per_yield - 1)
            std::this_thread::yield();
    }

  private:
    static constexpr std::int64_t looks_per_yield = 4;

    bool is_crowded() const { return neighbours_ * (1 + threads_.load(std::memory_order_relaxed)) > cores_; }

    int spins_ = 0;
    duration nap_{};
    int neighbours_ = 1;
    std::atomic<int> threads_{0};
    int cores_ = static_cast<int>(std::thread::hardware_concurrency());
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_waiting.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// One rank's post office and the waits at it. Every wait makes progress for all activities.
template <class Port>
class waiting {
  public:
    using options = typename Port::options;
    using node = typename post_office<Port>::node;

    rank_t rank() const { return office_.rank(); }
    int size() const { return office_.size(); }
    Port& through() { return office_.through(); }
    const options& chosen() const { return office_.chosen(); }
    bool is_concurrent() const { return mutex_.is_enabled(); }
    fiber_team& fibers() { return fibers_; }
    const void* this_activity() const {
        return is_concurrent() ? static_cast<const void*>(own_activity) : fibers_.current();
    }
    turns& taking_turns() { return turns_; }

    time_point now() const {
        require_alive();
        return Port::now();
    }

    /// Calls `ready()`, which may take what it waits for, until it is true; false when `until` has passed. Throws when
    /// the context has ended.
    ///
    /// The order of the calls matters. An ended context is looked for first: its waits throw even where what they wait
    /// for has come. `ready` is asked before the deadline is looked at, so that an immediate wait finds what is here. A
    /// step handles at most one note, and after one that moved anything `ready` is asked again: the wait may block in
    /// the port only when the last step, after the last `ready`, has moved nothing.
    template <class Ready>
    bool wait(channel on, deadline until, Ready&& ready, bool sleeps = false) {
        guard lock(mutex_);
        const presence here(waiting_);
        if (++waits_begun_ % 16 == 0 && alive_)
            step_for_all(deadline::immediate);  // makes progress for others even if no wait ever has to wait
        for (std::int64_t looks = 0;;) {
            throw_if_ended(on);
            if (ready()) return true;
            const bool moved = step_for_all(until);
            if (moved && looks_again(until, looks)) continue;
            if (has_passed(until, looks)) {
                if (!moved && until.is_immediate()) lock.keep_quiet();
                if (!moved) return false;
                throw_if_ended(on);
                return ready();
            }
            idle(lock, until, looks++, sleeps, !moved);
        }
    }

    /// For a thread of its own: makes progress while no other thread waits, until `stop`. It looks now and then whether
    /// one does, so that waits need not tell it. What it throws, the next wait throws.
    void attend(const std::atomic<bool>& stop) noexcept
        requires(Port::wakes)
    {
        constexpr duration least_pause = milliseconds(2), most_pause = milliseconds(20);
        std::unique_lock<optional_mutex> lock(mutex_);
        unsigned seen = waits_begun_;
        duration pause = least_pause;
        while (!stop.load(std::memory_order_acquire) && alive_) {
            if (waiting_ != 0 || seen != waits_begun_ || mutex_.comers.load(std::memory_order_relaxed) != 0) {
                pause = seen == waits_begun_ ? std::min(pause + pause, most_pause) : least_pause;
                seen = waits_begun_;
                through().rest(lock, pause);
                continue;
            }
            pause = least_pause;
            try {
                while (step(false)) {
                }
                through().attend(lock);
            } catch (...) {
                thrown_ = std::current_exception();
                through().wake();
                through().rest(lock, most_pause);
            }
            through().wake();
        }
    }
    /// Ends `attend`.
    void dismiss(std::atomic<bool>& stop) noexcept
        requires(Port::wakes)
    {
        const guard lock(mutex_);
        stop.store(true, std::memory_order_release);
        through().dismiss();
    }
    /// Lets all waits look again.
    void rouse() noexcept {
        if constexpr (Port::wakes) const guard lock(mutex_);
    }

    /// Waits until a fiber has finished.
    void see_off(const fiber_team::member& leaving) noexcept {
        guard lock(mutex_);
        for (std::int64_t looks = 0; !leaving.finished; ++looks) {
            try {
                if (alive_ && step()) continue;
            } catch (...) {  // the fiber's own waits throw the same, which ends it
            }
            if (fibers_.is_inside()) {
                fibers_.pass();
                continue;
            }
            fibers_.take_turns();
            turns_.pass(looks, false);
        }
    }

  protected:
    struct entrance : optional_mutex {
        explicit entrance(Port& of) : through(of) {}
        Port& through;
        std::atomic<int> comers{0};  ///< threads that are about to hold the mutex
    };
    /// Holds the mutex. At its end all who wait in the port look again, since anything may have changed.
    class guard {
      public:
        explicit guard(entrance& of) : of_(of) {
            of.comers.fetch_add(1, std::memory_order_relaxed);
            lock();
            of.comers.fetch_sub(1, std::memory_order_relaxed);
        }
        guard(const guard&) = delete;
        guard& operator=(const guard&) = delete;
        ~guard() {
            if constexpr (Port::wakes)
                if (!is_quiet_) of_.through.wake();
            unlock();
        }
        void lock() { of_.lock(); }
        void unlock() { of_.unlock(); }
        /// Nothing has changed.
        void keep_quiet() { is_quiet_ = true; }

      private:
        entrance& of_;
        bool is_quiet_ = false;
    };

    explicit waiting(const typename Port::place& of) : office_(of), mutex_(office_.through()) {}
    ~waiting() = default;

    /// Waits until `ready()`, even when contexts have ended; false when `until` has passed. True also when the port
    /// has ended.
    template <class Ready>
    bool wait_regardless(guard& lock, deadline until, Ready&& ready) {
        const presence here(waiting_);
        for (std::int64_t looks = 0; alive_ && !ready();) {
            const bool moved = step_for_all(until);
            if (moved && looks_again(until, looks)) continue;
            if (has_passed(until, looks)) return moved && ready();
            idle(lock, until, looks++, false, !moved);
        }
        return true;
    }
    /// Waits until `ready()` and ignores errors that other notes cause; false when `until` has passed. True also when
    /// the port has ended or failed, since waiting is then pointless. A port that `wakes` goes on after an error.
    template <class Ready>
    bool outlast(guard& lock, deadline until, Ready&& ready) noexcept {
        for (;;) {
            try {
                return wait_regardless(lock, until, ready);
            } catch (const typename Port::library_error&) {
                if constexpr (!Port::wakes) return true;
            } catch (...) {
            }
            if (has_passed(until, 0)) return false;  // where every step throws
        }
    }

    bool step(bool looks = true) { return office_.progress(looks); }

    void require_alive() const {
        if (!alive_) [[unlikely]]
            throw typename Port::library_error(rank(), Port::outlived);
    }

    post_office<Port> office_;
    entrance mutex_;
    fiber_team fibers_;
    turns turns_;
    bool alive_ = true;

  private:
    /// Counts a thread that waits.
    class presence {
      public:
        explicit presence(int& count) : count_(count) { ++count_; }
        presence(const presence&) = delete;
        presence& operator=(const presence&) = delete;
        ~presence() { --count_; }

      private:
        int& count_;
    };

    /// What a step of one thread has moved, another may wait for. A wait that sleeps in the port looks there.
    bool step_for_all(deadline until) {
        if constexpr (!Port::wakes) return step();
        const bool is_over = until.is_immediate() || (!until.is_never() && Port::now() >= until.at);
        const bool moved = step(is_over);
        if constexpr (Port::wakes)
            if (moved) through().wake();
        return moved;
    }

    void throw_if_ended(channel on) {
        require_alive();
        if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
        if (const abort_notice* const notice = office_.knowledge().find_notice(on)) throw_error(*notice);
        if (fibers_.must_stop() || (own_activity != nullptr && own_activity->stop.load(std::memory_order_acquire)))
            rill::detail::throw_stopped(rank(), on.context);
    }

    /// Whether a wait looks again at once after a step that has moved something. An immediate wait does so until no
    /// note is left, since what it waits for may lie behind any number of others.
    static bool looks_again(deadline until, std::int64_t& looks) { return until.is_immediate() || looks++ % 64 != 63; }

    /// Whether `until` has passed. An immediate wait still gives the fibers one turn.
    bool has_passed(deadline until, std::int64_t looks) const {
        if (until.is_immediate()) return looks > 0 || !fibers_.any();
        return !until.is_never() && (looks % 8 == 0 || Port::wakes) && Port::now() >= until.at;
    }

    /// Passes the time until the next poll. `blocks`: the wait may block in the port, since nothing has arrived since
    /// `ready()` was last false.
    void idle(guard& lock, deadline until, std::int64_t looks, bool sleeps, bool blocks) {
        if (fibers_.is_inside()) return fibers_.pass();
        if (fibers_.any())
            fibers_.take_turns();
        else if (blocks && may_block(until))
            return office_.through().await_note(lock, until);
        if (until.is_immediate()) return;
        lock.unlock();
        turns_.pass(looks, sleeps);
        lock.lock();
    }
    bool may_block(deadline until) const {
        if constexpr (Port::wakes) return !until.is_immediate();
        const duration beyond = office_.chosen().blocks_beyond;
        return beyond.ns != deadline::never.at.ns && !is_concurrent() && office_.only_waits_for_notes() &&
               until.at - Port::now() > beyond;
    }

    unsigned waits_begun_ = 0;
    int waiting_ = 0;
    std::exception_ptr thrown_;  ///< by a step that no wait made
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_endings.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Ends operations and runs, after success or failure, with the same outcome on all ranks.
template <class Port>
class endings : public waiting<Port> {
    using base = waiting<Port>;

  public:
    using base::chosen, base::rank, base::size, base::through;

    /// Aborts a context. Rank 0 says which notice was the first, or the lowest rank that is still there. If it does not
    /// answer, this rank reports to all others after half of the timeout, and at its end decides itself, for the lowest
    /// culprit that it knows. No two ranks that read their notes decide differently: a rank that failed later learns of
    /// the decision before its own timeout ends.
    abort_notice abort(const abort_notice& given) {
        const abort_notice notice = travelling(given);
        guard lock(mutex_);
        try {
            if (alive_) agree_on(lock, notice);
        } catch (const error&) {  // the port has failed: the other ranks may not learn why
        }
        const abort_notice* const first = office_.knowledge().first_before(notice);
        return first != nullptr ? *first : notice;
    }
    /// Looks at all notes that have come first: who begins an operation hears of a failure of before, and rank 0 tells
    /// the others, instead of taking part by what the failed rank had already sent.
    std::optional<abort_notice> aborted(std::uint64_t context) {
        const guard lock(mutex_);
        while (alive_ && step()) {
        }
        const abort_notice* const first = find_notice(context);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// Calls the body as this rank's part of a run and tells all ranks how it ended. An exception ends the run on all
    /// ranks but those that monitor: these are told that this rank has ended.
    ///
    /// Returns when all ranks have ended; rethrows the exception of this rank's body, or else throws what ended the
    /// run. After an exception it does not wait for ranks that go on.
    void run(function_ref<void()> body) {
        std::exception_ptr thrown;
        try {
            body();
        } catch (const typename Port::library_error& caught) {
            tell_if_possible(caught.notice());
            throw;
        } catch (...) {
            thrown = std::current_exception();
            abort_notice notice = rill::detail::notice_of_thrown(rank(), [this](const abort_notice& told) {
                const guard lock(mutex_);
                return office_.knowledge().origin_of(told);
            });
            if (notice.culprit == no_rank) notice.culprit = rank();
            fail(notice);
        }
        leave();
        const auto failed = await_all_left();
        if (thrown) std::rethrow_exception(thrown);
        if (failed) throw_error(*failed);
    }
    /// Tells the others that this rank has ended.
    void leave() {
        const guard lock(mutex_);
        require_alive();
        if (!office_.knowledge().failure) office_.depart();
        office_.leave();
    }
    /// Waits until all ranks have left; returns the notice that ended the run, if another rank has failed. After a
    /// failure, it waits only for a limited time.
    std::optional<abort_notice> await_all_left() {
        guard lock(mutex_);
        const control& known = office_.knowledge();
        const auto failed = [&] { return known.failure || find_notice(every_context) != nullptr; };
        const bool is_told_all = !known.monitors && !office_.takes_newcomers();
        office_.watch_leaving();
        const auto all_left = [&] {
            return office_.have_all_left(failed()) && (!known.any_failed || failed() || !is_told_all);
        };
        wait_regardless(lock, deadline::never, [&] { return failed() || all_left(); });
        wait_regardless(lock, Port::now() + chosen().failure_timeout, all_left);
        if (known.failure || !failed() || (office_.have_all_left(false) && !known.any_failed)) return std::nullopt;
        return *find_notice(every_context);
    }

  protected:
    using base::alive_, base::mutex_, base::office_, base::turns_;
    using base::outlast, base::require_alive, base::step, base::wait_regardless;
    using typename base::guard;

    using waiting<Port>::waiting;
    ~endings() = default;

    /// Waits until `done()`: the port no longer uses the user's memory for a message to or from `peer`. If that takes
    /// too long, ends the job: the memory can be neither given back nor kept.
    template <class Done>
    void settle(guard& lock, rank_t peer, std::uint64_t context, Done&& done) noexcept {
        const auto is_free = [&] { return office_.free_memory_for(peer), done(); };
        if (outlast(lock, Port::now() + chosen().failure_timeout, is_free)) return;
        const abort_notice* const failed = find_notice(context);
        std::fprintf(stderr,
                     "rill: rank %d ends the job: %s moves a message between its memory and rank %d, which does not "
                     "go on with it for %g s%s%s\n",
                     rank(), Port::name, peer, chosen().failure_timeout.seconds(), failed == nullptr ? "" : " after ",
                     failed == nullptr ? "" : failed->reason.c_str());
        through().end_job();
    }

  private:
    /// The body of this rank has thrown: ends all contexts of the ranks that do not monitor. `leave` tells the others.
    void fail(const abort_notice& given) {
        {
            const guard lock(mutex_);
            office_.knowledge().failure = travelling(given);
            office_.knowledge().monitors = false;  // this rank does not go on
            if (office_.do_all_others_go_on()) return;
        }
        abort(given);
    }
    /// Used when the port itself has failed: tries to tell the other ranks, and waits for nothing.
    void tell_if_possible(abort_notice notice) noexcept {
        notice.context = every_context;
        notice.culprit = rank();
        try {
            fail(notice);
            leave();
        } catch (...) {
        }
    }

    const abort_notice* find_notice(std::uint64_t context) {
        return office_.knowledge().find_notice({context, last_tag});
    }

    void agree_on(guard& lock, const abort_notice& notice) {
        const packed_notice report(notice);
        const auto is_known = [&] { return office_.knowledge().first_before(notice) != nullptr; };
        const duration half{chosen().abort_timeout.ns / 2};
        if (is_known()) return;
        const deadline first_half = Port::now() + half;
        rank_t judge = no_rank;
        while (judge != office_.judging() && Port::now() < first_half.at) {
            judge = office_.judging();
            office_.tell(judge, {.kind = note::report}, report.view());
            const auto is_over = [&] { return is_known() || office_.judging() != judge; };
            if (outlast(lock, first_half, is_over) && is_known()) return;
        }
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != judge) office_.tell(peer, {.kind = note::report}, report.view());
        if (outlast(lock, Port::now() + half, is_known)) return;
        office_.decide(notice.context);
    }
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_engine.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Does the work of the endpoints of one rank at one port, one endpoint after the other. It lives as
/// long as the port, and as the messages, sendings and activities of its endpoints.
template <class Port>
class engine : public endings<Port>, public std::enable_shared_from_this<engine<Port>> {
    using base = endings<Port>;
    using base::alive_, base::mutex_, base::office_, base::turns_;
    using base::outlast, base::require_alive, base::settle, base::step;
    using typename base::guard;

  public:
    using base::chosen, base::rank, base::size, base::through, base::wait;
    using typename base::node, typename base::options;

    explicit engine(const typename Port::place& of) : base(of) {}

    bool is_in_use() const { return in_use_; }
    /// The chunk size of a dense collective; the same on all ranks.
    std::size_t chunk_bytes() {
        constexpr std::size_t frame_head = 512;  // more than a head takes
        if (chosen().chunk_bytes != 0) return chosen().chunk_bytes;
        if (through().neighbours() == size()) return static_cast<std::size_t>(-1);
        return chosen().eager_bytes - frame_head;
    }

    /// Collective: all ranks call it equally often.
    void open(const options& given) {
        office_.open(given, ++incarnation_);
        mutex_.enable(through().is_concurrent());
        turns_.configure(given.spins, Port::is_simulation ? duration{} : given.nap, through().neighbours());
        in_use_ = true;
    }
    void close() noexcept {
        const guard lock(mutex_);
        if (alive_) office_.close();
        in_use_ = false;
    }
    /// Called when the port ends: present waits and later calls throw. True the first time.
    bool end() noexcept {
        const guard lock(mutex_);
        if (alive_) office_.abandon();
        return std::exchange(alive_, false);
    }
    /// Collective, after `end`.
    void free() { office_.free(); }

    std::uint64_t post(rank_t peer, channel on, const byte_pieces& pieces) {
        const guard lock(mutex_);
        require_alive();
        return office_.post(peer, on, pieces);
    }
    bool post(rank_t peer, channel on, buffer& bytes, deadline until) {
        {
            const guard lock(mutex_);
            require_alive();
            if (office_.post(peer, on, bytes)) return true;
        }
        return wait_for({&peer, 1}, on, until, [&] { return office_.post(peer, on, bytes); });
    }
    bool is_done(std::uint64_t id) {
        guard lock(mutex_);
        if (office_.is_done(id)) return true;
        require_alive();
        if (!step()) lock.keep_quiet();
        return office_.is_done(id);
    }
    bool await(std::uint64_t id, channel on, deadline until) {
        const rank_t peer = receiver_of(id);
        return wait_for({&peer, 1}, on, until, [&] {
            if (office_.is_done(id)) return true;
            office_.require_heard({&peer, 1}, on);
            return false;
        });
    }
    /// Withdraws a message that nobody has asked for; waits for one that is being sent.
    void settle_sent(std::uint64_t id, std::uint64_t context) noexcept {
        if (withdraw(id)) return;
        guard lock(mutex_);
        settle(lock, office_.receiver_of(id), context, [&] { return office_.is_done(id); });
    }
    /// Withdraws a message; false when it is being sent.
    bool withdraw(std::uint64_t id) noexcept {
        const guard lock(mutex_);
        try {
            return !alive_ || office_.withdraw(id);
        } catch (...) {
            return true;
        }
    }

    node* receive(std::span<const rank_t> peers, channel on, deadline until) {
        node* found = nullptr;
        await_message(peers, on, until, [&] { return (found = office_.take(peers, on)) != nullptr; });
        return found;
    }
    node* receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        node* found = nullptr;
        await_message(peers, on, until, [&] { return (found = office_.take_latest(peers, on)) != nullptr; });
        return found;
    }
    /// The message, which may already lie in the targets (`node::straight`); null when `until` has passed.
    node* receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until);

    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        const guard lock(mutex_);
        require_alive();
        office_.expect(peer, on, targets);
    }
    void forget(channel on) noexcept {
        guard lock(mutex_);
        try {
            if (!alive_) return;
            office_.forget(on);
            while (node* const placed = office_.take_placed(on)) {
                redirect(lock, *placed);
                office_.dispose(*placed);
            }
        } catch (...) {  // the port has failed: nothing arrives any more
        }
    }

    void release(node& n) noexcept {
        const guard lock(mutex_);
        office_.release(n);
    }

    void announce(std::uint64_t context, const call_signature& call) {
        const guard lock(mutex_);
        require_alive();
        office_.knowledge().calls.announce(context, call);
        if (!office_.knowledge().questions.empty()) office_.answer_questions(context);
    }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until);
    std::uint64_t next_context(std::uint64_t key) {
        const guard lock(mutex_);
        return office_.knowledge().calls.next_context(key);
    }
    void close_context(std::uint64_t context) {
        const guard lock(mutex_);
        if (alive_) office_.close_context(context);
    }
    std::uint64_t incarnation(rank_t peer) {
        const guard lock(mutex_);
        return through().incarnation(peer);
    }
    void monitor(channel on) {
        const guard lock(mutex_);
        require_alive();
        office_.monitor(on);
    }
    void fence(rank_t peer, std::uint64_t incarnation) {
        const guard lock(mutex_);
        require_alive();
        office_.fence(peer, incarnation);
    }
    traffic counted() {
        const guard lock(mutex_);
        return office_.counted();
    }

  private:
    /// Waits for what only these peers can bring about. Throws where they cannot any more: see `require_any`.
    template <class Ready>
    bool wait_for(std::span<const rank_t> peers, channel on, deadline until, Ready&& ready) {
        return wait(on, until, [&] {
            if (ready()) return true;
            office_.require_any(peers, on, until);
            return false;
        });
    }
    template <class Ready>
    bool await_message(std::span<const rank_t> peers, channel on, deadline until, Ready&& ready) {
        return wait_for(peers, on, until, [&] {
            if (ready()) return true;
            office_.require_coming(peers, on);
            return false;
        });
    }
    rank_t receiver_of(std::uint64_t id) {
        const guard lock(mutex_);
        return office_.receiver_of(id);
    }
    void redirect(guard& lock, node& n) {
        auto under_way = office_.redirect(n);
        settle(lock, n.source, n.on.context, [&] { return under_way.look(); });
    }

    std::uint32_t incarnation_ = 0;
    bool in_use_ = false;
};

/// After a deadline or an abort, returns at once unless the message is being written to the targets.
template <class Port>
typename engine<Port>::node* engine<Port>::receive_into(rank_t peer, channel on, std::span<const byte_span> targets,
                                                        deadline until) {
    const std::size_t room = size_bytes(targets);
    node* claimed = nullptr;
    const auto arrives = [&] {
        if (claimed != nullptr && claimed->is_gone()) office_.release(*std::exchange(claimed, nullptr));
        if (claimed == nullptr) claimed = office_.claim(peer, on, targets, room);
        return claimed != nullptr && claimed->is == node_state::complete;
    };
    const auto give_back = [&] {
        guard lock(mutex_);
        if (claimed == nullptr || !alive_) return;
        if (claimed->straight && !claimed->is_gone()) redirect(lock, *claimed);
        if (alive_) office_.unclaim(*claimed);
    };
    try {
        if (!await_message({&peer, 1}, on, until, arrives)) return give_back(), nullptr;
    } catch (...) {
        give_back();
        throw;
    }
    const guard lock(mutex_);
    office_.accept(*claimed);
    return claimed;
}

template <class Port>
std::optional<call_signature> engine<Port>::inquire(rank_t peer, std::uint64_t context, std::uint64_t number,
                                                    deadline until) {
    control& known = office_.knowledge();
    const auto entered_or_later = [&] {
        if (peer == rank()) return known.calls.entered_or_later(context, number);
        const rill::detail::call_history* const told = known.told(peer, context);
        return told != nullptr ? told->entered_or_later(number) : std::nullopt;
    };
    bool asked = peer == rank();
    bool takes_state = until.at > this->now();
    std::optional<call_signature> answer, before;
    const auto look = [&] {
        rill::detail::call_history* const told = known.told(peer, context);
        if (std::exchange(takes_state, false) && told != nullptr) before = told->take_state(number);
        answer = peer == rank()    ? known.calls.entered(context, number)
                 : told != nullptr ? told->entered(number)
                                   : std::nullopt;
        if (!answer && office_.is_away(peer))
            answer = entered_or_later().value_or(call_signature{.number = number, .kind = operation::departure});
        if (!answer && !std::exchange(asked, true))
            office_.tell(peer, {.context = context, .id = number, .kind = note::question});
        return answer.has_value();
    };
    if (wait({context, tag_of(number)}, until, look)) return answer;
    const guard lock(mutex_);
    const auto said = entered_or_later();
    return said ? said : before;
}

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_activity.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A thread of one rank where the port allows several, else a fiber, which runs whenever the rank waits or polls.
/// `join()` waits for its end and rethrows its exception. The destructor joins and discards the exception; if it runs
/// during unwinding, the activity's waits throw `peer_failure`, so that it ends.
template <class Port>
class activity {
  public:
    template <class Body>
    activity(engine<Port>& of, Body& body) {
        if (of.is_concurrent())
            start_thread(of, body);
        else
            start_fiber(of, body);
        engine_ = of.shared_from_this();
    }
    activity(activity&& other) noexcept { swap(other); }
    activity& operator=(activity&& other) noexcept {
        activity moved(std::move(other));
        swap(moved);
        return *this;
    }
    ~activity() {
        if (engine_ == nullptr) return;
        if (std::uncaught_exceptions() > unwinding_) {
            state().stop.store(true, std::memory_order_release);
            engine_->rouse();
        }
        finish();
    }

    void join() {
        if (engine_ == nullptr) return;
        if (const std::exception_ptr thrown = finish()) std::rethrow_exception(thrown);
    }

  private:
    struct thread_state {
        activity_state state{};
        std::thread thread{};
    };

    template <class Body>
    void start_thread(engine<Port>& of, Body& body) {
        own_ = std::make_unique<thread_state>();
        own_->thread = std::thread([&of, state = &own_->state, body = std::move(body)]() mutable {
            of.taking_turns().threads_changed(1);
            own_activity = state;
            try {
                body();
            } catch (...) {
                state->thrown = std::current_exception();
            }
            of.taking_turns().threads_changed(-1);
        });
    }

    /// Moves the body to the fiber's own stack before it returns.
    template <class Body>
    void start_fiber(engine<Port>& of, Body& body) {
        const auto run = [](void* given) {
            Body moved(std::move(*static_cast<Body*>(given)));
            moved();
        };
        member_ = &of.fibers().start(run, &body, of.chosen().stack_bytes);
    }

    activity_state& state() { return own_ ? own_->state : member_->state; }

    std::exception_ptr finish() noexcept {
        const std::shared_ptr<mail::engine<Port>> engine = std::exchange(engine_, nullptr);
        if (own_) {
            own_->thread.join();
            return std::exchange(own_->state.thrown, nullptr);
        }
        engine->see_off(*member_);
        std::exception_ptr thrown = std::exchange(member_->state.thrown, nullptr);
        engine->fibers().dismiss(*std::exchange(member_, nullptr));
        return thrown;
    }

    void swap(activity& other) noexcept {
        std::swap(engine_, other.engine_);
        std::swap(own_, other.own_);
        std::swap(member_, other.member_);
        std::swap(unwinding_, other.unwinding_);
    }

    std::shared_ptr<mail::engine<Port>> engine_;  // null: joined
    std::unique_ptr<thread_state> own_;
    fiber_team::member* member_ = nullptr;
    int unwinding_ = std::uncaught_exceptions();
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_meeting.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Lets activities of one rank wait for each other. Waits poll their condition, or look again when it may have changed,
/// and make progress meanwhile.
template <class Port>
class meeting_place {
  public:
    template <class Endpoint>
    meeting_place(Endpoint& net)
        : engine_(net.engine_) {}  // NOLINT(google-explicit-constructor): an endpoint says where

    template <class Ready>
    bool wait(deadline until, Ready&& ready) {
        return engine_->wait({every_context}, until, std::forward<Ready>(ready));
    }
    /// Lets fibers of this thread test their conditions now, so that one that gets work sends its first messages at
    /// once; and threads that wait.
    void ring() {
        if (fiber_team& sharing = engine_->fibers(); !sharing.is_inside()) sharing.take_turns();
        engine_->rouse();
    }

  private:
    std::shared_ptr<engine<Port>> engine_;
};

/// A flag that activities of one rank wait for.
template <class Port>
using event = rill::detail::meeting_flag<meeting_place<Port>>;
/// Passes values between activities of one rank, first in, first out.
template <class T, class Port>
using queue = rill::detail::meeting_queue<T, meeting_place<Port>>;

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_message.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A received message, in memory that the endpoint reuses after its release. A small message is one piece; a large one
/// has the pieces that were sent.
template <class Port>
using message = rill::detail::received_message<std::shared_ptr<engine<Port>>, typename engine<Port>::node>;

/// A borrowed send in progress. A message of up to `eager_bytes` is done when it is posted; a larger one when the
/// receiver has asked for it and the port has sent it, or when the receiver has dropped it.
template <class Port>
class sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept
        : engine_(std::move(other.engine_)), id_(std::exchange(other.id_, 0)), on_(other.on_) {}
    sending& operator=(sending&& other) noexcept {
        sending moved(std::move(other));
        std::swap(engine_, moved.engine_);
        std::swap(id_, moved.id_);
        std::swap(on_, moved.on_);
        return *this;
    }
    ~sending() {
        if (id_ != 0) engine_->withdraw(id_);
    }

    /// Throws the port's `library_error` when the port has ended.
    bool done() {
        if (id_ != 0 && engine_->is_done(id_)) id_ = 0;
        return id_ == 0;
    }

    /// True when done, false when `until` has passed; throws the failure that ended the context.
    bool wait(deadline until) {
        if (id_ != 0 && engine_->await(id_, on_, until)) id_ = 0;
        return id_ == 0;
    }

    /// Withdraws the message if nobody has asked for it, otherwise waits until the port has sent it, at most for
    /// `options::failure_timeout`; then it ends the job.
    void settle() noexcept {
        if (id_ != 0) engine_->settle_sent(std::exchange(id_, 0), on_.context);
    }

    sending(std::shared_ptr<engine<Port>> by, std::uint64_t id, channel on)
        : engine_(std::move(by)), id_(id), on_(on) {}

  private:
    std::shared_ptr<engine<Port>> engine_;
    std::uint64_t id_ = 0;  // 0: done
    channel on_{};
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mail_endpoint.hpp

namespace rill { inline namespace RILL_ABI { namespace mail {

/// What the endpoints over all ports have in common: each call goes to the engine.
template <class Port>
class endpoint {
  public:
    using message = mail::message<Port>;
    using sending = mail::sending<Port>;
    using activity = mail::activity<Port>;
    using event = mail::event<Port>;
    template <class T>
    using queue = mail::queue<T, Port>;

    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;

    rank_t rank() const { return engine_->rank(); }
    int size() const { return engine_->size(); }
    time_point now() const { return engine_->now(); }
    traffic counted() const { return engine_->counted(); }
    /// Identifies the calling activity among those of its rank.
    const void* this_activity() const { return engine_->this_activity(); }
    /// Whether activities run while this rank computes (they are threads) or only while it waits (they are fibers).
    bool activities_run_alone() const { return engine_->is_concurrent(); }

    void sleep_until(time_point instant) {
        engine_->wait(
            {every_context}, instant, [] { return false; }, true);
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        check(peer);
        const std::uint64_t id = engine_->post(peer, on, pieces);
        return id == 0 ? sending() : sending(engine_, id, on);
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        check(peer);
        return engine_->post(peer, on, bytes, until);
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return receive(std::span(&peer, 1), on, until);
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        check(peers);
        return wrap(engine_->receive(peers, on, until));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        check(peers);
        return wrap(engine_->receive_latest(peers, on, until));
    }
    /// Receives a large message straight into the targets, without a copy, unless one of its pieces straddles two
    /// targets.
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        check(peer);
        typename engine<Port>::node* const found = engine_->receive_into(peer, on, targets, until);
        if (found == nullptr) return false;
        const bool arrived_there = found->straight;
        const message received(engine_, *found);
        if (!arrived_there) rill::detail::copy_message(rank(), received, on, targets);
        return true;
    }

    /// Asks for an expected large message as soon as it is announced, before anybody waits for it. It arrives in the
    /// targets without a copy unless one of its pieces straddles two of them.
    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        check(peer);
        engine_->expect(peer, on, targets);
    }
    void forget(channel on) noexcept { engine_->forget(on); }
    std::size_t chunk_bytes() const { return engine_->chunk_bytes(); }

    void announce(std::uint64_t context, const call_signature& call) { engine_->announce(context, call); }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        check(peer);
        return engine_->inquire(peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) { return engine_->abort(notice); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return engine_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return engine_->next_context(key); }
    void close(std::uint64_t context) { engine_->close_context(context); }

    // See `MonitoredTransport`.

    std::uint64_t incarnation(rank_t peer) const
        requires MonitoringPort<Port>
    {
        check(peer);
        return engine_->incarnation(peer);
    }
    void monitor(channel on)
        requires MonitoringPort<Port>
    {
        engine_->monitor(on);
    }
    void fence(rank_t peer, std::uint64_t incarnation)
        requires MonitoringPort<Port>
    {
        check(peer);
        engine_->fence(peer, incarnation);
    }

    /// Throws std::logic_error where activities would be fibers and the system does not support them.
    template <class Body>
    activity spawn(Body body) {
        return {*engine_, body};
    }

  protected:
    explicit endpoint(std::shared_ptr<engine<Port>> by) : engine_(std::move(by)) {}
    ~endpoint() = default;

    std::shared_ptr<engine<Port>> engine_;

  private:
    friend class meeting_place<Port>;

    void check([[maybe_unused]] rank_t peer) const { RILL_EXPECTS(0 <= peer && peer < size(), "no such peer rank"); }
    void check(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers) check(peer);
    }

    std::optional<message> wrap(typename engine<Port>::node* taken) {
        if (taken == nullptr) return std::nullopt;
        return message(engine_, *taken);
    }
};

}}}  // namespace rill::RILL_ABI::mail

// ===== rill/transport/detail/mpi_library.hpp

// The MPI library: its header without the C++ bindings, its errors as exceptions, and the features that it lacks.

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings cost a second of compile time, and nothing here uses them
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif

#include <mpi.h>

/// SimGrid's SMPI declares matched probes and does not define them.
#if MPI_VERSION < 3 || defined(SMPI_H)
#define RILL_DETAIL_MPI_MATCHED_PROBES 0
#else
#define RILL_DETAIL_MPI_MATCHED_PROBES 1
#endif

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// Thrown when an MPI call has failed (`what()` has MPI's text), or when MPI was finalised before an endpoint ended.
/// The culprit is the rank that reports it, in ranks of its endpoint; `no_rank` before there is an endpoint.
class library_error : public error {
  public:
    library_error(rank_t rank, std::string reason)
        : error(abort_notice{.culprit = rank,
                             .reason = rank == no_rank ? std::move(reason)
                                                       : "rank " + std::to_string(rank) + ": " + std::move(reason)}) {}
};

namespace detail {

#if defined(SMPI_H)
/// True under SimGrid's SMPI: every poll is an event of the simulation, and all processes are simulated in turn.
inline constexpr bool is_simulation = true;
#else
inline constexpr bool is_simulation = false;
#endif
inline constexpr std::int64_t forever_ns = deadline::never.at.ns;
inline constexpr bool has_matched_probes = RILL_DETAIL_MPI_MATCHED_PROBES != 0;

inline bool is_initialised() {
    int flag = 0;
    MPI_Initialized(&flag);
    return flag != 0;
}
inline bool is_finalised() {
    int flag = 0;
    MPI_Finalized(&flag);
    return flag != 0;
}
inline bool is_running() { return is_initialised() && !is_finalised(); }

[[noreturn]] inline void fail(int code, const char* call, rank_t rank) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw library_error(rank, std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

/// Throws when an MPI call has failed on `rank`.
inline void check(int code, const char* call, rank_t rank = no_rank) {
    if (code != MPI_SUCCESS) [[unlikely]]
        fail(code, call, rank);
}

inline time_point wall_clock() { return {static_cast<std::int64_t>(MPI_Wtime() * 1e9)}; }

}  // namespace detail
}}}  // namespace rill::RILL_ABI::mpi

// ===== rill/transport/detail/mpi_environment.hpp

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// How many threads may call the MPI library: MPI's four levels.
enum class thread_level : std::uint8_t { single, funneled, serialized, multiple };

/// For messages: "funneled".
constexpr const char* name(thread_level level) {
    constexpr const char* names[] = {"single", "funneled", "serialized", "multiple"};
    return names[static_cast<std::size_t>(level)];
}

namespace detail {

/// Compares, because the MPI standard orders the constants but does not fix their values.
inline thread_level level_of(int provided) {
    if (provided >= MPI_THREAD_MULTIPLE) return thread_level::multiple;
    if (provided >= MPI_THREAD_SERIALIZED) return thread_level::serialized;
    return provided >= MPI_THREAD_FUNNELED ? thread_level::funneled : thread_level::single;
}
inline int constant_of(thread_level level) {
    const int constants[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    return constants[static_cast<std::size_t>(level)];
}
inline thread_level granted_level() {
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
    return level_of(provided);
}

}  // namespace detail

/// Initialises MPI unless it is initialised, and in that case finalises it on destruction unless it has been finalised.
/// Collective over all processes, as MPI_Init is.
///
/// It accepts a thread level other than the wanted one; `provided()` says which. With `multiple`, activities are
/// threads and run while the rank computes, but every small message costs more. Throws `library_error` when MPI has
/// been finalised: it cannot start again.
class environment {
  public:
    explicit environment(thread_level wanted = thread_level::funneled) {
        if (detail::is_finalised()) throw library_error(no_rank, "MPI has been finalised and cannot start again");
        if (!detail::is_initialised()) {
            int provided = 0;
            detail::check(MPI_Init_thread(nullptr, nullptr, detail::constant_of(wanted), &provided), "MPI_Init_thread");
            owns_ = true;
        }
        provided_ = detail::granted_level();
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    ~environment() {
        if (owns_ && !detail::is_finalised()) MPI_Finalize();
    }

    thread_level provided() const { return provided_; }
    /// Whether this object has initialised MPI, so that its destructor finalises it.
    bool owns() const { return owns_; }

  private:
    thread_level provided_ = thread_level::single;
    bool owns_ = false;
};

}}}  // namespace rill::RILL_ABI::mpi

// ===== rill/transport/detail/mpi_options.hpp

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// How an endpoint uses the MPI library. `mailbox_bytes`, `eager_bytes` and `chunk_bytes` must be equal on all ranks;
/// otherwise the constructors of the endpoints throw `mismatch`.
struct options {
    /// Bound of the bytes that one rank has handed over to another and the other has not received. A second bound of
    /// the same size is that of the bytes in large messages that one rank has sent to another unasked.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// A message of up to this size is copied at its post and sent at once. A larger one that is sent unasked goes in
    /// pieces of this size. Any other waits at its sender until its receiver asks for it. At least 1024. (Over TCP,
    /// Open MPI sends at once up to 64 KiB including its own head.)
    std::size_t eager_bytes = (std::size_t{64} << 10) - 512;
    /// Whether a borrowed message above `eager_bytes` is sent before its receiver asks for it, if `mailbox_bytes` has
    /// room for it: one copy more at each end, and no round trip. Not set: no if all ranks share memory,
    /// otherwise yes.
    std::optional<bool> sends_unasked{};
    /// all_reduce of a dense vector cuts each part of it into chunks of this many bytes, rounded up to elements, so
    /// that one chunk travels while another is folded. A part is cut into at most 1024 chunks, and not at all where the
    /// topology sends several parts in one message (halving_doubling). No other collective is cut. 0: not cut where all
    /// ranks share memory; otherwise a chunk and its head are about as large as `eager_bytes`.
    std::size_t chunk_bytes = 0;
    /// True: receives by MPI_Improbe and MPI_Mrecv. False, or where the library lacks them: by MPI_Iprobe and MPI_Recv.
    bool matched_probes = detail::has_matched_probes;
    /// A wait polls this often if there are at least as many cores as ranks, and then gives its core away every few
    /// polls. In activities that are threads, a wait sleeps for `nap` per poll instead after `spins` more polls.
    int spins = 2000;
    duration nap = microseconds(20);
    /// A wait whose deadline is farther away than this may block in the MPI library, and then notices the deadline only
    /// when a message arrives. It blocks only where no activity and no transfer is in progress.
    duration blocks_beyond = detail::is_simulation ? seconds(1) : duration(detail::forever_ns);
    /// How long `abort` waits for rank 0 to say which notice was the first, before this rank decides and tells all.
    duration abort_timeout = seconds(2);
    /// How long this rank waits after a failure for ranks that have not noticed it. `run` then throws without them. If
    /// such a rank holds up a message that MPI has begun to send from, or receive into, the user's memory, the memory
    /// cannot be given back: the job ends with a line on stderr that names the rank.
    duration failure_timeout = seconds(30);
    /// The stack size of an activity that is a fiber.
    std::size_t stack_bytes = std::size_t{256} << 10;

    friend bool operator==(const options&, const options&) = default;
};

}}}  // namespace rill::RILL_ABI::mpi

// ===== rill/transport/detail/mpi_port.hpp

namespace rill { inline namespace RILL_ABI { namespace mpi::detail {

/// Two duplicates of a communicator. Notes travel on the first one. Parts of large messages travel on the second one,
/// each to a receive that is already posted. Construction is collective.
class port {
  public:
    struct request {
        MPI_Request handle = MPI_REQUEST_NULL;
        explicit operator bool() const { return handle != MPI_REQUEST_NULL; }
    };
    using place = MPI_Comm;
    using options = mpi::options;
    using library_error = mpi::library_error;
    static constexpr const char* name = "MPI";
    static constexpr const char* outlived =
        "the endpoint has outlived MPI, which has been finalised, or its communicator";
    static constexpr bool is_simulation = detail::is_simulation;
    static constexpr bool wakes = false;

    explicit port(MPI_Comm of) {
        require(MPI_Comm_rank(of, &rank_), "MPI_Comm_rank");
        require(MPI_Comm_size(of, &size_), "MPI_Comm_size");
        require(MPI_Comm_dup(of, &notes_), "MPI_Comm_dup");
        require(MPI_Comm_dup(of, &data_), "MPI_Comm_dup");
        require(MPI_Comm_set_errhandler(notes_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        require(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): asks on the communicator made above
        neighbours_ = count_neighbours();
    }
    port(const port&) = delete;
    port& operator=(const port&) = delete;

    rank_t rank() const { return rank_; }
    int size() const { return size_; }
    /// The number of ranks that share memory with this one, including itself.
    int neighbours() const { return neighbours_; }
    static time_point now() { return wall_clock(); }

    void configure(const options& chosen) {
        level_ = granted_level();
        matched_probes_ = chosen.matched_probes;
    }
    thread_level level() const { return level_; }
    bool is_concurrent() const { return level_ == thread_level::multiple; }

    /// Throws when an MPI call has failed.
    void require(int code, const char* call) const { check(code, call, rank_); }

    /// Collective; replaces `bits` by the bitwise and over all ranks.
    void agree(std::vector<std::uint64_t>& bits) const {
        require(MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UINT64_T, MPI_BAND, notes_),
                "MPI_Allreduce");
    }

    bool is_complete(request& of) const {
        int flag = 0;
        require(MPI_Test(&of.handle, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        return flag != 0;
    }
    std::optional<mail::part_end> look(request& of) const {
        int flag = 0, cancelled = 0;
        MPI_Status status;
        require(MPI_Test(&of.handle, &flag, &status), "MPI_Test");
        if (flag == 0) return std::nullopt;
        require(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
        return mail::part_end{.size = cancelled != 0 ? 0 : bytes_of(status), .cancelled = cancelled != 0};
    }
    void cancel(request& of) const noexcept { MPI_Cancel(&of.handle); }
    bool abandon(request& of) const noexcept {
        if (!of) return true;
        int flag = 0;
        MPI_Test(&of.handle, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) MPI_Request_free(&of.handle);
        return flag != 0;
    }

    /// Ends all processes.
    [[noreturn]] void end_job() const noexcept {
        MPI_Abort(notes_, 1);
        std::abort();
    }

    /// Collective.
    void free() {
        MPI_Comm_free(&notes_);
        MPI_Comm_free(&data_);
    }

    request send_note(const std::byte* bytes, std::size_t size, rank_t peer) const {
        request begun;
        require(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, note_tag, notes_, &begun.handle), "MPI_Isend");
        return begun;
    }

    /// The caller must hold off all other threads.
    mail::received_note receive_note(std::byte* into, std::size_t capacity) const {
        int found = 0;
        MPI_Status status;
        const int count = static_cast<int>(capacity);
#if RILL_DETAIL_MPI_MATCHED_PROBES
        if (matched_probes_) {
            MPI_Message message = MPI_MESSAGE_NULL;
            require(MPI_Improbe(MPI_ANY_SOURCE, note_tag, notes_, &found, &message, &status), "MPI_Improbe");
            if (found == 0) return {};
            require(MPI_Mrecv(into, count, MPI_BYTE, &message, &status), "MPI_Mrecv");
            return received(status);
        }
#endif
        require(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, notes_, &found, &status), "MPI_Iprobe");
        if (found == 0) return {};
        require(MPI_Recv(into, count, MPI_BYTE, status.MPI_SOURCE, note_tag, notes_, &status), "MPI_Recv");
        return received(status);
    }

    /// Blocks until there is a note.
    template <class Lock>
    void await_note(Lock&, deadline) const {
        MPI_Status status;
        require(MPI_Probe(MPI_ANY_SOURCE, note_tag, notes_, &status), "MPI_Probe");
    }

    /// MPI ends the job when a process ends early.
    static rank_t take_loss() { return no_rank; }
    static rank_t take_goodbye() { return no_rank; }
    static void watch(rank_t) {}

    request send_part(const std::byte* bytes, std::size_t size, rank_t peer, std::uint32_t tag) const {
        request begun;
        require(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &begun.handle),
                "MPI_Isend");
        return begun;
    }
    request receive_part(std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag) const {
        request begun;
        require(MPI_Irecv(into, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &begun.handle),
                "MPI_Irecv");
        return begun;
    }

  private:
    static constexpr int note_tag = 1;

    std::size_t bytes_of(const MPI_Status& status) const {
        int size = 0;
        require(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
        return static_cast<std::size_t>(size);
    }
    mail::received_note received(const MPI_Status& status) const {
        return {.source = status.MPI_SOURCE, .size = bytes_of(status)};
    }

    /// Collective.
    int count_neighbours() const {
        if (is_simulation) return 1;
        MPI_Comm neighbours = MPI_COMM_NULL;
        int count = 0;
        require(MPI_Comm_split_type(notes_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours),
                "MPI_Comm_split_type");
        require(MPI_Comm_size(neighbours, &count), "MPI_Comm_size");
        require(MPI_Comm_free(&neighbours), "MPI_Comm_free");
        return count;
    }

    MPI_Comm notes_ = MPI_COMM_NULL;
    MPI_Comm data_ = MPI_COMM_NULL;
    rank_t rank_ = no_rank;
    int size_ = 0;
    int neighbours_ = 1;
    thread_level level_ = thread_level::single;
    bool matched_probes_ = has_matched_probes;
};

static_assert(mail::MailPort<port>);

using engine = mail::engine<port>;

}}}  // namespace rill::RILL_ABI::mpi::detail

// ===== rill/transport/detail/mpi_registry.hpp

namespace rill { inline namespace RILL_ABI { namespace mpi::detail {

/// The engines of each communicator, stored in an attribute of it. They are kept because duplicating a communicator for
/// each endpoint would be slow, and because freeing a duplicate is collective, which a destructor must not be. They end
/// with the communicator or with MPI.
class registry {
  public:
    /// The one registry. It is never destroyed, because a static `environment` may end MPI after all other objects.
    static registry& instance() {
        static registry& only = *new registry;
        return only;
    }

    /// Opens an engine that no rank uses. Collective; all ranks make and destroy their endpoints in the same order.
    std::shared_ptr<engine> open(MPI_Comm of, const options& chosen) {
        engines& known = of_communicator(of);
        if (known.empty()) {
            known.push_back(std::make_shared<engine>(of));
            agree_on(*known.front(), {}, chosen);
        } else if (const auto free = agree_on(*known.front(), known, chosen)) {
            known[*free]->open(chosen);
            return known[*free];
        } else {
            known.push_back(std::make_shared<engine>(of));
        }
        known.back()->open(chosen);
        return known.back();
    }

  private:
    using engines = std::vector<std::shared_ptr<engine>>;

    registry() = default;

    /// Collective; the index of the first engine that is free on all ranks, if there is one. No rank returns before all
    /// have called. Throws `mismatch` where the ranks' builds or options differ.
    static std::optional<std::size_t> agree_on(engine& speaker, const engines& known, const options& chosen) {
        const std::uint64_t common[] = {mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR), chosen.eager_bytes,
                                        chosen.chunk_bytes, chosen.mailbox_bytes};
        constexpr const char* names[] = {"of other versions of rill", "with other values of eager_bytes",
                                         "with other values of chunk_bytes", "with other values of mailbox_bytes"};
        constexpr std::size_t values = std::size(common);
        std::vector<std::uint64_t> bits(2 * values + (known.size() + 63) / 64);
        for (std::size_t i = 0; i < values; ++i) bits[values + i] = ~(bits[i] = common[i]);
        for (std::size_t i = 0; i < known.size(); ++i)
            if (!known[i]->is_in_use()) bits[2 * values + i / 64] |= std::uint64_t{1} << i % 64;
        speaker.through().agree(bits);
        for (std::size_t i = 0; i < values; ++i)
            if (bits[i] != common[i] || bits[values + i] != ~common[i])
                throw mismatch(abort_notice{.kind = failure::mismatch,
                                            .reason = std::string("the ranks make mpi endpoints ") + names[i]});
        for (std::size_t i = 0; i < known.size(); ++i)
            if ((bits[2 * values + i / 64] >> i % 64 & 1U) != 0) return i;
        return std::nullopt;
    }

    engines& of_communicator(MPI_Comm of) {
        const std::lock_guard lock(mutex_);
        watch_finalisation();
        void* found = nullptr;
        int flag = 0;
        check(MPI_Comm_get_attr(of, key_, static_cast<void*>(&found), &flag), "MPI_Comm_get_attr");
        if (flag != 0) return *static_cast<engines*>(found);
        all_.push_back(std::make_unique<engines>());
        check(MPI_Comm_set_attr(of, key_, all_.back().get()), "MPI_Comm_set_attr");
        return *all_.back();
    }

    /// Sets an attribute of MPI_COMM_SELF, because MPI_Finalize begins by deleting those.
    void watch_finalisation() {
        if (key_ != MPI_KEYVAL_INVALID) return;
        int self_key = MPI_KEYVAL_INVALID;
        check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &registry::communicator_ends, &key_, this),
              "MPI_Comm_create_keyval");
        check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &registry::library_ends, &self_key, this),
              "MPI_Comm_create_keyval");
        check(MPI_Comm_set_attr(MPI_COMM_SELF, self_key, this), "MPI_Comm_set_attr");
    }

    static int communicator_ends(MPI_Comm, int, void* value, void* self) {
        const auto ended = static_cast<registry*>(self)->take(static_cast<engines*>(value));
        for (const auto& each : *ended)
            if (each->end()) each->free();
        return MPI_SUCCESS;
    }
    static int library_ends(MPI_Comm, int, void* value, void*) {
        for (const auto& engines_of_one : static_cast<registry*>(value)->all_)
            for (const auto& each : *engines_of_one) each->end();
        return MPI_SUCCESS;
    }

    std::unique_ptr<engines> take(const engines* ended) {
        const std::lock_guard lock(mutex_);
        const auto is_it = [=](const auto& each) { return each.get() == ended; };
        const auto found = std::find_if(all_.begin(), all_.end(), is_it);
        std::unique_ptr<engines> taken = std::move(*found);
        all_.erase(found);
        return taken;
    }

    std::mutex mutex_;
    int key_ = MPI_KEYVAL_INVALID;
    std::vector<std::unique_ptr<engines>> all_;
};

}}}  // namespace rill::RILL_ABI::mpi::detail

// ===== rill/transport/mpi.hpp

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// A received message: see `mail::message`.
using message = mail::message<detail::port>;
/// A borrowed send in progress: see `mail::sending`.
using sending = mail::sending<detail::port>;
/// A thread or a fiber of one rank: see `mail::activity`.
using activity = mail::activity<detail::port>;
/// A flag that activities of one rank wait for.
using event = mail::event<detail::port>;
/// Passes values between activities of one rank, first in, first out.
template <class T>
using queue = mail::queue<T, detail::port>;

/// Calls `body(endpoint&)` as this process's rank of the communicator and returns when the bodies of all ranks have
/// ended. Collective; MPI must be running.
///
/// An exception that leaves a body aborts every context: that rank is the culprit, and the exception's text is the
/// reason. The waits of all other ranks then throw, and `run` throws on every rank: the exception of the rank's own
/// body, or else the error of the abort. For ranks that do not notice the abort, `run` waits at most
/// `options::failure_timeout`.
template <class Body>
void run(MPI_Comm processes, Body&& body, const options& chosen = {});

/// One rank among the processes of an MPI communicator. Models `ConcurrentTransport`.
///
/// It communicates on duplicates of the communicator, so that its messages never mix with the user's; later endpoints
/// on the same communicator reuse the duplicates. Construction is collective, and all ranks must construct and destroy
/// their endpoints in the same order. Destruction waits for nobody: handed-over messages larger than `eager_bytes` that
/// no receiver has asked for are then lost. (`run` waits until all ranks have ended.)
///
/// With MPI_THREAD_MULTIPLE any thread of the rank may call it, and activities are threads. With lower thread levels
/// only one thread may call it, and activities are fibers that run whenever that thread waits or polls;
/// `activities_run_alone` says which is the case. Progress is made only by calls that wait or poll.
///
/// Errors of the MPI library are thrown as `library_error`, also by every wait on an endpoint that has outlived
/// MPI_Finalize or its communicator. A message of up to `eager_bytes` costs one MPI send; a larger one costs two more
/// of 32 bytes each beforehand, or several sends of `eager_bytes` where it goes unasked. Messages may be larger than
/// 2^31 bytes. Memory: about 100 bytes per peer, the messages that have arrived, and up to 256 MiB of buffers kept for
/// later messages; between endpoints, until the communicator ends, a few times `eager_bytes`. Messages and sendings may
/// outlive their endpoint and the communicator.
///
/// Under SimGrid's SMPI, simulate processes as threads (`--cfg=contexts/factory:thread`): with its other contexts, all
/// ranks share the state of the exceptions that they handle.
class endpoint : public mail::endpoint<detail::port> {
  public:
    /// MPI must be running: see `environment`.
    explicit endpoint(MPI_Comm processes, const options& chosen = {})
        : mail::endpoint<detail::port>(open(processes, chosen)) {}
    ~endpoint() { engine_->close(); }

    mpi::thread_level thread_level() const { return engine_->through().level(); }

  private:
    template <class Body>
    friend void mpi::run(MPI_Comm processes, Body&& body, const options& chosen);

    static std::shared_ptr<detail::engine> open(MPI_Comm processes, const options& chosen) {
        RILL_EXPECTS(chosen.eager_bytes >= mail::least_eager_bytes && chosen.eager_bytes <= std::size_t{1} << 30,
                     "mpi: eager_bytes must be between 1024 and 2^30");
        RILL_EXPECTS(chosen.abort_timeout.ns >= 0 && chosen.failure_timeout.ns >= 0,
                     "mpi: abort_timeout and failure_timeout must not be negative");
        if (!detail::is_running())
            throw library_error(no_rank, "MPI is not running: make a rill::mpi::environment first");
        return detail::registry::instance().open(processes, chosen);
    }
};

static_assert(ConcurrentTransport<endpoint> && ExpectingTransport<endpoint> && ChunkingTransport<endpoint>);

template <class Body>
void run(MPI_Comm processes, Body&& body, const options& chosen) {
    endpoint net(processes, chosen);
    net.engine_->run([&] { body(net); });
}
/// Runs `body` on all processes: on MPI_COMM_WORLD.
template <class Body>
void run(Body&& body, const options& chosen = {}) {
    run(MPI_COMM_WORLD, std::forward<Body>(body), chosen);
}

}}}  // namespace rill::RILL_ABI::mpi

#endif  // RILL_SINGLE_TRANSPORT_MPI_HPP
