// rill 0.1.0: <rill/transport/in_process.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_IN_PROCESS_HPP
#define RILL_SINGLE_TRANSPORT_IN_PROCESS_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/in_process.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/in_process.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
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

// ===== rill/transport/detail/in_process_board.hpp

namespace rill::inline RILL_ABI::in_process::detail {

/// What one rank exposes in one operation, and where it stands in it. All is told by numbers of operations, which rise;
/// only its rank writes to it, but for the claims.
struct alignas(128) place {
    /// Of the operation that is exposed: then `what` stays until all have left.
    std::uint64_t exposed() const { return word.load(std::memory_order_seq_cst) / steps; }
    /// Also tells that one before it has been left, if it is not so long ago that there is no telling.
    void expose(std::uint64_t number, std::uint64_t left_before) {
        const std::uint64_t ago = number - left_before;
        word.store(number * steps + (ago < steps ? ago : 0), std::memory_order_seq_cst);
    }
    /// The one before it; 0 where there is no telling.
    std::uint64_t left_before() const {
        const std::uint64_t seen = word.load(std::memory_order_relaxed), ago = seen % steps;
        return ago == 0 ? 0 : seen / steps - ago;
    }

    static constexpr std::uint64_t steps = 256;
    std::atomic<std::uint64_t> word{0};
    exposure what{};  ///< what small operations need of it lies in one cache line with the above
    std::atomic<std::uint64_t> inside{0};
    std::atomic<std::uint64_t> withdrawn{0};
    alignas(128) std::atomic<std::uint64_t> claims{0};
};

/// What the ranks of one context share.
class board {
  public:
    static constexpr std::uint64_t places = calls_remembered;
    static constexpr std::size_t slot_bytes = std::size_t{1} << 14;

    explicit board(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

    int size() const { return static_cast<int>(ranks_.size()); }
    place& at(rank_t rank, std::uint64_t number) { return of(rank).exposed[index_of(number)]; }
    /// The operation of that place which the rank has left last.
    std::atomic<std::uint64_t>& left(rank_t rank, std::uint64_t number) { return of(rank).left[index_of(number)]; }

    /// Memory for copies that are exposed: as long as the board.
    std::byte* new_slot() {
        const std::lock_guard lock(mutex_);
        slots_.emplace_back(slot_bytes);
        return slots_.back().data();
    }

    /// The call that a rank has exposed under that number, or else under the highest one beyond it. For ranks that have
    /// not left that call: of none that it could be is the place taken again.
    std::optional<call_signature> entered(rank_t rank, std::uint64_t number) {
        place& due = at(rank, number);
        if (due.exposed() != number) return std::nullopt;
        return due.what.call;
    }
    std::optional<call_signature> entered_later(rank_t rank, std::uint64_t number) {
        std::optional<call_signature> latest;
        for (std::uint64_t i = 0; i < places; ++i) {
            const std::uint64_t other = at(rank, i).exposed();
            if (other > number && (!latest || other > latest->number)) latest = at(rank, i).what.call;
        }
        return latest;
    }

  private:
    struct of_rank {
        alignas(128) std::array<std::atomic<std::uint64_t>, places> left{};
        std::array<place, board::places> exposed{};
    };
    of_rank& of(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    static std::size_t index_of(std::uint64_t number) { return static_cast<std::size_t>(number % places); }

    std::vector<of_rank> ranks_;
    std::mutex mutex_;
    std::vector<aligned_vector<std::byte>> slots_;
};

/// The boards of all contexts, each for as long as a rank has a handle to it.
class boards {
  public:
    std::shared_ptr<board> of(std::uint64_t context, int ranks) {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [](const auto& each) { return each.second.expired(); });
        std::shared_ptr<board> found = all_[context].lock();
        if (found == nullptr) all_[context] = found = std::make_shared<board>(ranks);
        return found;
    }
    /// Null where there is none.
    std::shared_ptr<board> find(std::uint64_t context) {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(context);
        return found == all_.end() ? nullptr : found->second.lock();
    }

  private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::weak_ptr<board>> all_;
};

}  // namespace rill::inline RILL_ABI::in_process::detail

// ===== rill/transport/detail/in_process_mailbox.hpp

namespace rill::inline RILL_ABI::in_process::detail {

/// A message between its post and its release. A borrowed one has two owners, the sender's `sending` and the receiver;
/// whoever lets go last returns it to the receiver's mailbox.
struct node {
    // The marks of a borrowed message. They are only ever added, so that each side learns from one atomic operation
    // what the other has done before.
    static constexpr unsigned taken = 1;      ///< by a receiver, who now reads
    static constexpr unsigned released = 2;   ///< by the receiver: the sender may reuse its bytes
    static constexpr unsigned abandoned = 4;  ///< by the sender, while the receiver reads
    static constexpr unsigned awaited = 8;    ///< the sender wants to be woken by the release

    rank_t source = no_rank;
    rank_t receiver = no_rank;
    channel on{};
    std::uint64_t arrival = 0;
    byte_pieces pieces{};
    buffer owned{};
    bool borrowed = false;
    std::atomic<unsigned> marks{0};
    node* next = nullptr;
    node* previous = nullptr;
};

/// The undelivered messages of one rank, one list per sender, and the nodes of all messages to it. Its rank's mutex
/// guards everything except `retire`.
class mailbox {
  public:
    explicit mailbox(int ranks) : lists_(static_cast<std::size_t>(ranks)) {}

    /// Bytes handed over and not yet taken.
    std::size_t held_bytes() const { return held_bytes_; }

    /// Amortised: allocates only while more nodes are in use than ever before.
    node& borrow(rank_t source, rank_t receiver, channel on, byte_pieces pieces) {
        node& added = append(source, receiver, on);
        added.pieces = pieces;
        added.borrowed = true;
        return added;
    }
    node& hand_over(rank_t source, rank_t receiver, channel on, buffer&& bytes) {
        node& added = append(source, receiver, on);
        added.owned = std::move(bytes);
        added.pieces = byte_view(added.owned);
        added.borrowed = false;
        held_bytes_ += added.owned.size();
        return added;
    }

    /// The earliest arrival, or null.
    node* take(std::span<const rank_t> peers, channel on) {
        node* best = nullptr;
        for (const rank_t peer : peers)
            if (node* first = earliest(peer, on);
                first != nullptr && (best == nullptr || first->arrival < best->arrival))
                best = first;
        if (best != nullptr) mark_taken(*best);
        return best;
    }

    /// The latest arrival, or null; `drop(node&)` gets the others.
    template <class Drop>
    node* take_latest(std::span<const rank_t> peers, channel on, Drop&& drop) {
        node* best = nullptr;
        for (node* other = take(peers, on); other != nullptr; other = take(peers, on)) {
            if (best != nullptr) drop(*best);
            best = other;
        }
        return best;
    }

    template <class Drop>
    void drop_context(std::uint64_t context, Drop&& drop) {
        for (list& from : lists_)
            for (node* n = from.first; n != nullptr;) {
                node* const dropped = std::exchange(n, n->next);
                if (dropped->on.context != context) continue;
                mark_taken(*dropped);
                drop(*dropped);
            }
    }

    /// Takes back a borrowed message that nobody has taken; false when somebody has.
    bool withdraw(node& posted) {
        if ((posted.marks.load(std::memory_order_relaxed) & node::taken) != 0) return false;
        unlink(posted);
        return true;
    }

    /// Any thread, without the mutex: nodes are pushed one by one and popped all at once, so that no node can return
    /// to the top unseen (ABA).
    void retire(node& unused) noexcept {
        unused.next = retired_.load(std::memory_order_relaxed);
        while (!retired_.compare_exchange_weak(unused.next, &unused, std::memory_order_release,
                                               std::memory_order_relaxed)) {
        }
    }

  private:
    struct list {
        node* first = nullptr;
        node* last = nullptr;
    };
    static constexpr std::size_t nodes_per_block = 32;

    list& of(rank_t source) { return lists_[static_cast<std::size_t>(source)]; }

    node& append(rank_t source, rank_t receiver, channel on) {
        node& added = unused();
        added.source = source;
        added.receiver = receiver;
        added.on = on;
        added.arrival = ++arrivals_;
        added.marks.store(0, std::memory_order_relaxed);
        list& from = of(source);
        added.next = nullptr;
        added.previous = from.last;
        (from.last == nullptr ? from.first : from.last->next) = &added;
        from.last = &added;
        return added;
    }

    node& unused() {
        if (free_ == nullptr) free_ = retired_.exchange(nullptr, std::memory_order_acquire);
        if (free_ == nullptr) {
            blocks_.push_back(std::make_unique<node[]>(nodes_per_block));
            for (std::size_t i = 0; i < nodes_per_block; ++i)
                blocks_.back()[i].next = std::exchange(free_, &blocks_.back()[i]);
        }
        return *std::exchange(free_, free_->next);
    }

    node* earliest(rank_t peer, channel on) {
        node* n = of(peer).first;
        while (n != nullptr && n->on != on) n = n->next;
        return n;
    }

    void mark_taken(node& n) {
        unlink(n);
        if (!n.borrowed) held_bytes_ -= n.owned.size();
        n.marks.fetch_or(node::taken, std::memory_order_relaxed);
    }

    void unlink(node& n) {
        list& from = of(n.source);
        (n.previous == nullptr ? from.first : n.previous->next) = n.next;
        (n.next == nullptr ? from.last : n.next->previous) = n.previous;
    }

    std::vector<list> lists_;
    std::vector<std::unique_ptr<node[]>> blocks_;
    node* free_ = nullptr;
    std::atomic<node*> retired_{nullptr};
    std::uint64_t arrivals_ = 0;
    std::size_t held_bytes_ = 0;
};

}  // namespace rill::inline RILL_ABI::in_process::detail

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

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_CALL_TABLE_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_CALL_TABLE_HPP

// ===== rill/transport/detail/call_table.hpp

namespace rill::inline RILL_ABI::detail {

/// What one rank has entered and closed. Its rank guards it.
///
/// A closed context is remembered for a while: messages that come too late are dropped instead of filling the mailbox,
/// and peers that are behind still learn that this rank had entered their call.
class call_table {
  public:
    static constexpr std::size_t closed_remembered = 1024;

    void announce(std::uint64_t context, const call_signature& call) { contexts_[context].calls.announce(call); }

    std::optional<call_signature> entered(std::uint64_t context, std::uint64_t number) const {
        const auto found = contexts_.find(context);
        return found == contexts_.end() ? std::nullopt : found->second.calls.entered(number);
    }
    std::optional<call_signature> entered_or_later(std::uint64_t context, std::uint64_t number) const {
        const auto found = contexts_.find(context);
        return found == contexts_.end() ? std::nullopt : found->second.calls.entered_or_later(number);
    }

    void close(std::uint64_t context) {
        state& closing = contexts_[context];
        if (closing.closed) return;
        closing.closed = true;
        closed_.push_back(context);
        if (closed_.size() <= closed_remembered) return;
        contexts_.erase(closed_.front());
        closed_.pop_front();
    }

    bool is_closed(std::uint64_t context) const {
        if (closed_.empty()) return false;
        const auto found = contexts_.find(context);
        return found != contexts_.end() && found->second.closed;
    }

    std::uint64_t next_context(std::uint64_t key) {
        constexpr std::uint64_t family = 0x72696C6C;  // keeps hashed contexts of key 0 apart from other uses of mix64
        return mix64(family, key, ++made_[key]);
    }

  private:
    struct state {
        rill::detail::call_history calls{};
        bool closed = false;
    };

    std::unordered_map<std::uint64_t, state> contexts_;
    std::unordered_map<std::uint64_t, std::uint64_t> made_;
    std::deque<std::uint64_t> closed_;
};

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_CALL_TABLE_HPP

// ===== rill/transport/detail/in_process_bell.hpp

namespace rill::inline RILL_ABI::in_process::detail {

inline time_point steady_now() {
    using namespace std::chrono;
    return {duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count()};
}

/// How long a wait tries before it sleeps.
struct patience {
    int spins = 0;
    int yields = 0;
};

/// Where the threads of one rank wait: they read `strokes()`, look whether what they want is there, and if it is not,
/// wait for the next stroke. Ringing costs one atomic addition while nobody sleeps.
///
/// Sleeps on a condition variable: the timed waits of libstdc++ 12's semaphores and atomics can lose a wake-up.
class bell {
  public:
    std::uint32_t strokes() const noexcept { return strokes_.load(std::memory_order_acquire); }

    void ring() noexcept {
        // Both sides sequentially consistent: either this load sees the sleeper, or the sleeper sees the stroke.
        strokes_.fetch_add(1, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
        { const std::lock_guard lock(mutex_); }  // a thread about to sleep has either seen the stroke or sleeps now
        changed_.notify_all();
    }

    /// True when the bell has rung since `seen` was read, false when `until` has passed before that.
    bool wait(std::uint32_t seen, deadline until, patience tries) {
        for (int i = 0; i < tries.spins; ++i) {
            if (strokes() != seen) return true;
            pause();
        }
        for (int i = 0; i < tries.yields; ++i) {
            if (strokes() != seen) return true;
            if (!until.is_never() && steady_now() >= until.at) return false;
            yield();
        }
        return block(seen, until);
    }

    static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    static void yield() noexcept { std::this_thread::yield(); }

  private:
    bool block(std::uint32_t seen, deadline until) {
        const auto rung = [&] { return strokes_.load(std::memory_order_seq_cst) != seen; };
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        bool result = true;
        if (until.is_never()) {
            changed_.wait(lock, rung);
        } else {
            const std::chrono::steady_clock::time_point at{std::chrono::nanoseconds(until.at.ns)};
            result = changed_.wait_until(lock, at, rung);
        }
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return result;
    }

    std::atomic<std::uint32_t> strokes_{0};
    std::atomic<int> sleepers_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace rill::inline RILL_ABI::in_process::detail

// ===== rill/transport/detail/in_process_bells.hpp

namespace rill::inline RILL_ABI::in_process::detail {

/// The bells of one rank. Activities that wait for different things wait at different bells, so that what one of them
/// has been waiting for does not wake the others: with a few of them asleep that would cost more than the message.
///
/// They stay as long as the rank: whoever rings may do so when those who waited have gone.
class bells {
  public:
    /// For messages of a channel and the release of what was lent on it. Neighbouring tags have different ones.
    bell& of(channel on) { return all_[1 + (on.context + on.tag) % channels]; }
    /// For everything else.
    bell& common() { return all_[0]; }
    /// For an event or a queue: another one for each, as far as they go.
    bell& of_meeting() {
        return all_[1 + channels + meetings_made_.fetch_add(1, std::memory_order_relaxed) % meetings];
    }

    void ring_all() noexcept {
        for (bell& each : all_) each.ring();
    }

  private:
    static constexpr std::size_t channels = 16, meetings = 32;

    struct alignas(64) apart : bell {};
    std::array<apart, 1 + channels + meetings> all_;
    std::atomic<std::size_t> meetings_made_{0};
};

}  // namespace rill::inline RILL_ABI::in_process::detail

// ===== rill/transport/detail/in_process_rank_state.hpp

namespace rill::inline RILL_ABI::in_process::detail {

using rill::detail::call_table;

/// What others reach of one rank.
struct alignas(64) rank_state {
    explicit rank_state(int ranks) : box(ranks) {}

    std::mutex mutex;  ///< guards box, calls and awaiting_room; bells may be rung while it is held
    mailbox box;
    call_table calls;
    std::vector<rank_t> awaiting_room;
    class bells bells;
    alignas(64) std::atomic<std::uint64_t> messages_sent{0}, bytes_sent{0}, messages_received{0},
        bytes_received{0}, accesses{0}, bytes_accessed{0};  ///< without messages, in either direction
};

/// Keeps a sender on the list of those to wake when there is room.
class room_request {
  public:
    room_request(rank_state& target, rank_t sender) : target_(target), sender_(sender) {
        const std::lock_guard lock(target_.mutex);
        target_.awaiting_room.push_back(sender_);
    }
    room_request(const room_request&) = delete;
    room_request& operator=(const room_request&) = delete;
    ~room_request() {
        const std::lock_guard lock(target_.mutex);
        auto& all = target_.awaiting_room;
        all.erase(std::find(all.begin(), all.end(), sender_));
    }

  private:
    rank_state& target_;
    rank_t sender_;
};

}  // namespace rill::inline RILL_ABI::in_process::detail

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

// ===== rill/transport/detail/in_process_notice_board.hpp

namespace rill::inline RILL_ABI::in_process::detail {

/// What has ended which context. Any thread may tell and ask; to ask costs one load while nothing has ended.
class notice_board {
  public:
    /// The first notice of a context wins, and a notice of all contexts is one of each: gives the one that won, and
    /// whether that is this one.
    std::pair<abort_notice, bool> add(const abort_notice& notice) {
        const std::lock_guard lock(mutex_);
        if (const abort_notice* first = find(notice.context)) return {*first, false};
        notices_.emplace(notice.context, notice);
        count_.fetch_add(1, std::memory_order_release);
        return {notice, true};
    }

    std::optional<abort_notice> of(std::uint64_t context) {
        if (count_.load(std::memory_order_acquire) == 0) return std::nullopt;
        const std::lock_guard lock(mutex_);
        const abort_notice* first = find(context);
        return first == nullptr ? std::nullopt : std::optional(*first);
    }

    /// What has ended a context, in ranks of this world, where an error in ranks of a subgroup tells of it.
    std::optional<abort_notice> origin_of(const abort_notice& told) {
        const std::lock_guard lock(mutex_);
        for (const auto& [context, notice] : notices_)
            if (rill::detail::same_failure(notice, told)) return notice;
        return std::nullopt;
    }

  private:
    const abort_notice* find(std::uint64_t context) const {
        auto found = notices_.find(context);
        if (found == notices_.end()) found = notices_.find(every_context);
        return found == notices_.end() ? nullptr : &found->second;
    }

    std::mutex mutex_;
    std::unordered_map<std::uint64_t, abort_notice> notices_;
    std::atomic<int> count_{0};
};

}  // namespace rill::inline RILL_ABI::in_process::detail

// ===== rill/transport/detail/in_process_waits.hpp

namespace rill::inline RILL_ABI::in_process::detail {

/// Set while this thread runs an activity: whether its waits shall end.
inline thread_local const std::atomic<bool>* stop_requested = nullptr;

/// How ranks wait for each other, and the notices that end their waits.
class waits {
  public:
    waits(int ranks, patience most)
        : most_(most), threads_(ranks), cores_(static_cast<int>(std::thread::hardware_concurrency())) {
        for (int i = 0; i < ranks; ++i) ranks_.push_back(std::make_unique<rank_state>(ranks));
    }

    int size() const { return static_cast<int>(ranks_.size()); }
    rank_state& at(rank_t rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
    void threads_changed(int by) { threads_.fetch_add(by, std::memory_order_relaxed); }

    /// Waits for what is told by the bell of a channel until `ready()`; false when `until` has passed. Throws when the
    /// context has ended.
    template <class Ready>
    bool wait(rank_t rank, channel on, deadline until, Ready&& ready) {
        return wait_at(at(rank).bells.of(on), rank, on.context, until, ready);
    }

    /// The same, whatever has ended.
    template <class Ready>
    void wait_regardless(rank_t rank, channel on, Ready&& ready) {
        for (bell& own = at(rank).bells.of(on);;) {
            const std::uint32_t seen = own.strokes();
            if (ready()) return;
            own.wait(seen, deadline::never, tries());
        }
    }

    /// Waits for what is told by the common bell.
    template <class Ready>
    bool wait(rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        return wait_at(at(rank).bells.common(), rank, context, until, ready);
    }

    /// Waits for another activity of the same rank; so long it leaves its core to that one.
    template <class Ready>
    bool meet(bell& where, rank_t rank, deadline until, Ready&& ready) {
        struct away {
            waits& of;
            ~away() { of.threads_changed(1); }
        };
        threads_changed(-1);
        const away meanwhile{*this};
        return wait_at(where, rank, every_context, until, ready);
    }

    /// Waits for what others store and then tell by `tell_all`: looks at it, and sleeps only in the end. Then it also
    /// ends when `rarely()`, which is told in the same way. False when `until` has passed.
    template <class Ready, class Rarely>
    bool watch(rank_t rank, std::uint64_t context, deadline until, Ready&& ready, Rarely&& rarely) {
        throw_if_ended(rank, context);
        const patience most = tries();
        for (int i = 0; i < most.spins * looks_per_spin; ++i) {
            if (ready()) return true;
            bell::pause();
        }
        for (int i = 0; i < most.yields; ++i)
            if (const auto seen = look_once(rank, context, until, ready)) return *seen;
        const inquirer counted(*this);
        const auto either = [&] { return ready() || rarely(); };
        return wait_at(at(rank).bells.common(), rank, context, until, either, {});
    }

    /// The same for what nobody tells.
    template <class Ready>
    bool watch_awake(rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        for (;;)
            if (const auto seen = look_once(rank, context, until, ready)) return *seen;
    }

    /// The same, whatever has ended.
    template <class Ready>
    void watch_regardless(rank_t rank, Ready&& ready) {
        const inquirer counted(*this);
        for (bell& own = at(rank).bells.common();;) {
            const std::uint32_t seen = own.strokes();
            if (ready()) return;
            own.wait(seen, deadline::never, tries());
        }
    }

    /// Wakes those who watch. Whoever sleeps has counted itself before its last look, sequentially consistent, as what
    /// is told must be stored.
    void tell_all() noexcept {
        if (inquirers_.load(std::memory_order_seq_cst) == 0) return;
        for (const auto& each : ranks_) each->bells.common().ring();
    }

    /// Counts itself among those who are to be told what any rank does.
    struct inquirer {
        explicit inquirer(waits& of) : count(of.inquirers_) { count.fetch_add(1, std::memory_order_seq_cst); }
        inquirer(const inquirer&) = delete;
        inquirer& operator=(const inquirer&) = delete;
        ~inquirer() { count.fetch_sub(1, std::memory_order_relaxed); }

        std::atomic<int>& count;
    };

    abort_notice abort(const abort_notice& notice) {
        const auto [first, is_new] = notices_.add(notice);
        if (is_new) ring_all();
        return first;
    }
    std::optional<abort_notice> origin_of(const abort_notice& told) { return notices_.origin_of(told); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return notices_.of(context); }

  private:
    static constexpr int looks_per_spin = 100;  ///< at a word instead of a bell

    /// Looks, and gives the core away; empty when it has neither come nor run out of time.
    template <class Ready>
    std::optional<bool> look_once(rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        throw_if_ended(rank, context);
        if (ready()) return true;
        if (!until.is_never() && steady_now() >= until.at) return false;
        bell::yield();
        return std::nullopt;
    }

    template <class Ready>
    bool wait_at(bell& own, rank_t rank, std::uint64_t context, deadline until, Ready&& ready) {
        return wait_at(own, rank, context, until, ready, tries());
    }
    template <class Ready>
    bool wait_at(bell& own, rank_t rank, std::uint64_t context, deadline until, Ready&& ready, patience most) {
        for (;;) {
            const std::uint32_t seen = own.strokes();
            throw_if_ended(rank, context);
            if (ready()) return true;
            if (until.is_immediate() || !own.wait(seen, until, most)) return false;
        }
    }

    patience tries() const {
        return {threads_.load(std::memory_order_relaxed) <= cores_ ? most_.spins : 0, most_.yields};
    }

    void throw_if_ended(rank_t rank, std::uint64_t context) {
        if (const auto notice = aborted(context)) throw_error(*notice);
        if (stop_requested != nullptr && stop_requested->load(std::memory_order_acquire))
            throw_error(
                {.context = context,
                 .culprit = rank,
                 .reason = "rank " + std::to_string(rank) + " left an activity behind: an exception passed it"});
    }

    void ring_all() {
        for (const auto& each : ranks_) each->bells.ring_all();
    }

    patience most_;
    std::vector<std::unique_ptr<rank_state>> ranks_;
    std::atomic<int> threads_;
    int cores_;
    notice_board notices_;
    alignas(64) std::atomic<int> inquirers_{0};  ///< looked at by whoever tells something
};

}  // namespace rill::inline RILL_ABI::in_process::detail

// ===== rill/transport/detail/in_process_world.hpp

namespace rill::inline RILL_ABI::in_process {

/// How the ranks of a run wait, and how much may lie undelivered. Results do not depend on it.
struct options {
    /// Bound of the bytes handed over to one rank and not yet taken by it. Borrowed bytes are not copied, hence free.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// A wait first polls this often (about 40 ns each) if there are at least as many cores as threads, …
    int spins = 16;
    /// … then gives its core away this often, then sleeps.
    int yields = 200;

    friend bool operator==(const options&, const options&) = default;
};

namespace detail {

/// What the ranks share: their messages, the calls that they announce, and how they wait.
class world : public waits {
  public:
    world(int ranks, const options& chosen)
        : waits(ranks, {.spins = chosen.spins, .yields = chosen.yields}), mailbox_bytes_(chosen.mailbox_bytes) {}

    detail::boards& boards() { return boards_; }

    /// Null when the receiver has closed the context.
    node* post(rank_t from, rank_t to, channel on, const byte_pieces& pieces) {
        rank_state& target = at(to);
        node* posted = nullptr;
        {
            const std::lock_guard lock(target.mutex);
            if (!target.calls.is_closed(on.context)) posted = &target.box.borrow(from, to, on, pieces);
        }
        count_sent(from, pieces.size_bytes());
        if (posted != nullptr) target.bells.of(on).ring();
        return posted;
    }

    bool post(rank_t from, rank_t to, channel on, buffer&& bytes, deadline until) {
        const std::size_t size = bytes.size();
        const auto attempt = [&] { return try_hand_over(from, to, on, std::move(bytes)); };
        if (!attempt()) {
            if (until.is_immediate()) return false;
            const room_request waiting(at(to), from);
            if (!wait(from, on.context, until, attempt)) return false;
        }
        count_sent(from, size);
        at(to).bells.of(on).ring();
        return true;
    }

    /// Null when `until` has passed.
    node* receive(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        return receive_by(self, on, until, [&](mailbox& box) { return box.take(peers, on); });
    }
    node* receive_latest(rank_t self, std::span<const rank_t> peers, channel on, deadline until) {
        return receive_by(self, on, until, [&](mailbox& box) {
            return box.take_latest(peers, on, [this](node& dropped) { release(dropped); });
        });
    }

    /// By the receiver, who will not read the message again.
    void release(node& read) noexcept {
        if (!read.borrowed) {
            buffer().swap(read.owned);
            at(read.receiver).box.retire(read);
            return;
        }
        const rank_t source = read.source;  // once released, the node may be in use again
        const channel on = read.on;
        const unsigned before = read.marks.fetch_or(node::released, std::memory_order_acq_rel);
        if ((before & node::abandoned) != 0)
            at(read.receiver).box.retire(read);
        else if ((before & node::awaited) != 0)
            at(source).bells.of(on).ring();
    }

    /// By the sender; true when nobody will read the message any more.
    bool withdraw(node& posted) noexcept {
        rank_state& target = at(posted.receiver);
        const std::lock_guard lock(target.mutex);
        return target.box.withdraw(posted);
    }

    void announce(rank_t self, std::uint64_t context, const call_signature& call) {
        {
            const std::lock_guard lock(at(self).mutex);
            at(self).calls.announce(context, call);
        }
        // Whoever looked before the lock has counted itself before that.
        tell_all();
    }

    /// The call that a rank has announced or exposed under that number.
    std::optional<call_signature> announced(rank_t rank, std::uint64_t context, std::uint64_t number) {
        {
            const std::lock_guard lock(at(rank).mutex);
            if (const auto call = at(rank).calls.entered(context, number)) return call;
        }
        const auto shared = boards_.find(context);
        return shared == nullptr ? std::nullopt : shared->entered(rank, number);
    }

    std::optional<call_signature> inquire(rank_t self, rank_t peer, std::uint64_t context, std::uint64_t number,
                                          deadline until) {
        const inquirer waiting(*this);
        std::optional<call_signature> answer;
        const auto look = [&] {
            answer = announced(peer, context, number);
            return answer.has_value();
        };
        if (wait(self, context, until, look)) return answer;
        return announced_later(peer, context, number);
    }

    void close(rank_t self, std::uint64_t context) {
        rank_state& own = at(self);
        const std::lock_guard lock(own.mutex);
        own.calls.close(context);
        own.box.drop_context(context, [this](node& dropped) { release(dropped); });
        offer_room(own);
    }

    std::uint64_t next_context(rank_t self, std::uint64_t key) {
        const std::lock_guard lock(at(self).mutex);
        return at(self).calls.next_context(key);
    }

    /// What has passed without messages, as much in either direction.
    void count(rank_t rank, std::uint64_t messages, std::uint64_t bytes) {
        at(rank).accesses.fetch_add(messages, std::memory_order_relaxed);
        at(rank).bytes_accessed.fetch_add(bytes, std::memory_order_relaxed);
    }
    traffic counted(rank_t rank) {
        const rank_state& own = at(rank);
        constexpr auto relaxed = std::memory_order_relaxed;
        const std::uint64_t accesses = own.accesses.load(relaxed), bytes = own.bytes_accessed.load(relaxed);
        return {own.messages_sent.load(relaxed) + accesses, own.bytes_sent.load(relaxed) + bytes,
                own.messages_received.load(relaxed) + accesses, own.bytes_received.load(relaxed) + bytes};
    }

  private:
    /// The latest call that a rank has announced or exposed, from that number on.
    std::optional<call_signature> announced_later(rank_t rank, std::uint64_t context, std::uint64_t number) {
        const auto exposed = exposed_later(rank, context, number);
        const std::lock_guard lock(at(rank).mutex);
        const auto announced = at(rank).calls.entered_or_later(context, number);
        if (!exposed || !announced) return exposed ? exposed : announced;
        return exposed->number < announced->number ? announced : exposed;
    }
    std::optional<call_signature> exposed_later(rank_t rank, std::uint64_t context, std::uint64_t number) {
        const auto shared = boards_.find(context);
        return shared == nullptr ? std::nullopt : shared->entered_later(rank, number);
    }

    bool try_hand_over(rank_t from, rank_t to, channel on, buffer&& bytes) {
        rank_state& target = at(to);
        const std::lock_guard lock(target.mutex);
        if (target.calls.is_closed(on.context)) {
            buffer().swap(bytes);
            return true;
        }
        const std::size_t held = target.box.held_bytes();
        if (held != 0 && (held > mailbox_bytes_ || bytes.size() > mailbox_bytes_ - held)) return false;
        target.box.hand_over(from, to, on, std::move(bytes));
        return true;
    }

    template <class Take>
    node* receive_by(rank_t self, channel on, deadline until, Take&& take) {
        rank_state& own = at(self);
        node* found = nullptr;
        wait(self, on, until, [&] {
            const std::lock_guard lock(own.mutex);
            found = take(own.box);
            if (found != nullptr) offer_room(own);
            return found != nullptr;
        });
        if (found != nullptr) {
            own.messages_received.fetch_add(1, std::memory_order_relaxed);
            own.bytes_received.fetch_add(found->pieces.size_bytes(), std::memory_order_relaxed);
        }
        return found;
    }

    void offer_room(rank_state& own) {
        for (const rank_t sender : own.awaiting_room) at(sender).bells.common().ring();
    }

    void count_sent(rank_t from, std::size_t bytes) {
        at(from).messages_sent.fetch_add(1, std::memory_order_relaxed);
        at(from).bytes_sent.fetch_add(bytes, std::memory_order_relaxed);
    }

    std::size_t mailbox_bytes_;
    alignas(64) detail::boards boards_;  ///< apart from what all who wait and tell look at
};

}  // namespace detail
}  // namespace rill::inline RILL_ABI::in_process

// ===== rill/transport/detail/in_process_activity.hpp

namespace rill::inline RILL_ABI::in_process {

/// A thread of one rank. `join()` waits for its end and rethrows what it threw. The destructor joins and forgets what
/// it threw; when it runs because an exception unwinds, the activity's waits throw `peer_failure`, so that it ends.
class activity {
  public:
    activity(activity&&) = default;
    activity& operator=(activity&& other) noexcept {
        activity(std::move(other)).swap(*this);
        return *this;
    }
    ~activity() {
        if (!thread_.joinable()) return;
        if (std::uncaught_exceptions() > unwinding_) {
            state_->stop.store(true, std::memory_order_release);
            state_->world.at(state_->rank).bells.ring_all();
        }
        thread_.join();
    }

    void join() {
        if (thread_.joinable()) thread_.join();
        if (state_ != nullptr && state_->thrown) std::rethrow_exception(std::exchange(state_->thrown, nullptr));
    }

  private:
    friend class endpoint;
    struct state {
        detail::world& world;
        rank_t rank;
        std::atomic<bool> stop{false};
        std::exception_ptr thrown{};
    };

    template <class Body>
    activity(detail::world& world, rank_t rank, Body body) : state_(new state{.world = world, .rank = rank}) {
        thread_ = std::thread([own = state_.get(), body = std::move(body)]() mutable {
            own->world.threads_changed(1);
            detail::stop_requested = &own->stop;
            try {
                body();
            } catch (...) {
                own->thrown = std::current_exception();
            }
            own->world.threads_changed(-1);
        });
    }
    void swap(activity& other) noexcept {
        state_.swap(other.state_);
        thread_.swap(other.thread_);
        std::swap(unwinding_, other.unwinding_);
    }

    std::unique_ptr<state> state_;
    std::thread thread_;
    int unwinding_ = std::uncaught_exceptions();
};

}  // namespace rill::inline RILL_ABI::in_process

// ===== rill/transport/detail/in_process_commons.hpp

namespace rill::inline RILL_ABI::in_process {

/// One rank's handle to what the ranks of a context share.
///
/// Whoever waits looks at what it waits for, and has itself counted only before it sleeps: telling costs one exchange
/// of a word and one look at that count.
class commons {
  public:
    static constexpr std::uint64_t places = detail::board::places;
    static constexpr std::size_t slot_bytes = detail::board::slot_bytes;

    commons(detail::world& world, rank_t rank, std::uint64_t context)
        : world_(&world),
          board_(world.boards().of(context, world.size())),
          context_(context),
          rank_(rank),
          left_by_(static_cast<std::size_t>(world.size())) {}
    /// Slots are not shared between handles.
    commons(const commons& other)
        : world_(other.world_),
          board_(other.board_),
          context_(other.context_),
          rank_(other.rank_),
          left_by_(other.left_by_.size()) {}
    commons(commons&&) = default;
    commons& operator=(const commons& other) { return *this = commons(other); }
    commons& operator=(commons&&) = default;
    ~commons() = default;

    bool has_room(rank_t peer, std::uint64_t number, deadline until) {
        if (number == room_for_) return true;
        const auto has = [&] { return offers_room(peer, number); };
        // Those who pass do not tell: this wait must not sleep. It is short, since nobody waits before it leaves.
        return has() || world_->watch_awake(rank_, context_, until, has);
    }
    void expose(const exposure& what) {
        detail::place& own = board_->at(rank_, what.call.number);
        own.what.call = what.call;
        own.what.note = what.note;
        own.what.input = what.input;
        if (what.output != nullptr) {  // small operations leave these lines to those who read them
            own.what.output = what.output;
            own.claims.store(0, std::memory_order_relaxed);
        }
        own.expose(what.call.number, left_last_);
        world_->tell_all();
    }

    /// Takes the lines of the next slot out of the caches of those who have read it: 256 floats among 2 ranks are 190
    /// ns in place of 255 in a loop that does nothing else.
    void prepare(std::uint64_t number) {
        if (!all_offer_room(number)) return;
        room_for_ = number;
        const slot_use& next = next_slot();
        if (next.memory == nullptr) return;
        for (std::size_t i = 0; i < last_slot().bytes; i += line) next.memory[i] = std::byte{};
    }

    const exposure* exposed(rank_t peer, const call_signature& call, deadline until) {
        detail::place& theirs = board_->at(peer, call.number);
        const auto is_there = [&] { return theirs.exposed() == call.number; };
        const auto is_refused = [&] {
            const auto announced = world_->announced(peer, context_, call.number);
            return announced && *announced != call;
        };
        if (!world_->watch(rank_, context_, until, is_there, is_refused) || !is_there()) return nullptr;
        left_by_[static_cast<std::size_t>(peer)] = theirs.left_before();
        return &theirs.what;
    }

    bool enter(std::uint64_t number) {
        // Both sides sequentially consistent: either this sees that the other has withdrawn, or the other that this is
        // inside.
        board_->at(rank_, number).inside.store(number, std::memory_order_seq_cst);
        for (rank_t peer = 0; peer < board_->size(); ++peer)
            if (board_->at(peer, number).withdrawn.load(std::memory_order_seq_cst) == number) {
                abandon(number);
                return false;
            }
        return true;
    }
    void leave(std::uint64_t number) noexcept {
        detail::place& own = board_->at(rank_, number);
        own.inside.store(0, std::memory_order_seq_cst);  // as all that is told: `withdraw` may sleep
        board_->left(rank_, number).store(number, std::memory_order_seq_cst);
        left_last_ = number;
        world_->tell_all();
    }
    void abandon(std::uint64_t number) noexcept {
        board_->at(rank_, number).inside.store(0, std::memory_order_seq_cst);
        world_->tell_all();
    }

    void pass(std::uint64_t number) noexcept {
        board_->left(rank_, number).store(number, std::memory_order_release);
        left_last_ = number;
    }

    bool has_left(rank_t peer, std::uint64_t number, deadline until) {
        const auto has = [&] { return is_over(peer, number); };
        return world_->watch(rank_, context_, until, has, [] { return false; });
    }

    void withdraw(std::uint64_t number) noexcept {
        board_->at(rank_, number).withdrawn.store(number, std::memory_order_seq_cst);
        world_->watch_regardless(rank_, [&] {
            for (rank_t peer = 0; peer < board_->size(); ++peer)
                if (peer != rank_ && board_->at(peer, number).inside.load(std::memory_order_seq_cst) == number)
                    return false;
            return true;
        });
    }

    std::uint64_t claim(rank_t peer, std::uint64_t number) {
        return board_->at(peer, number).claims.fetch_add(1, std::memory_order_relaxed);
    }

    byte_span slot(std::uint64_t number, std::size_t bytes) {
        RILL_EXPECTS(bytes <= slot_bytes, "in_process: more bytes than a slot has");
        slot_use& chosen = next_slot();
        if (chosen.memory == nullptr) chosen.memory = board_->new_slot();
        chosen.number = number;
        chosen.bytes = bytes;
        ++slots_used_;
        room_for_ = 0;
        return {chosen.memory, bytes};
    }

    void count(std::uint64_t messages, std::uint64_t bytes) { world_->count(rank_, messages, bytes); }

  private:
    static constexpr std::size_t line = 64;  ///< of the caches, in bytes

    struct slot_use {
        std::byte* memory = nullptr;
        std::uint64_t number = 0;  ///< of the operation that it has been used in last
        std::size_t bytes = 0;     ///< of those
    };

    /// Who has left a later one of the same place has left this one, by whichever handle: a rank begins none before
    /// its own of `places` numbers before it has been left (concept/shared_memory.hpp).
    bool is_over(rank_t peer, std::uint64_t number) const {
        return peer == rank_ || board_->left(peer, number).load(std::memory_order_seq_cst) >= number;
    }
    /// Whether the peer has left the operations whose place and whose slot that one takes.
    bool offers_room(rank_t peer, std::uint64_t number) {
        return is_over(peer, board_->at(rank_, number).exposed()) && is_over(peer, next_slot().number);
    }
    /// The same of all, by what they have told where that is enough: to ask takes a cache line from each.
    bool all_offer_room(std::uint64_t number) {
        if (number >= free_below_ && !finds_free_places(number)) return false;
        for (rank_t peer = 0; peer < board_->size(); ++peer)
            if (left_by_[static_cast<std::size_t>(peer)] != next_slot().number && !is_over(peer, next_slot().number))
                return false;
        return true;
    }
    /// Looks at as many as a cache line tells of.
    bool finds_free_places(std::uint64_t number) {
        for (std::uint64_t i = number; i < number + line / sizeof(std::uint64_t); ++i) {
            for (rank_t peer = 0; peer < board_->size(); ++peer)
                if (!is_over(peer, board_->at(rank_, i).exposed())) return i != number;
            free_below_ = i + 1;
        }
        return true;
    }
    slot_use& next_slot() { return slots_[slots_used_ % slots_.size()]; }
    slot_use& last_slot() { return slots_[(slots_used_ + slots_.size() - 1) % slots_.size()]; }

    detail::world* world_;
    std::shared_ptr<detail::board> board_;
    std::uint64_t context_;
    rank_t rank_;
    std::array<slot_use, 3> slots_{};  ///< of one others read the last operation, one is filled, one is prepared
    std::size_t slots_used_ = 0;
    std::vector<std::uint64_t> left_by_;  ///< of each rank an operation that it has left
    std::uint64_t left_last_ = 0;         ///< by this handle
    std::uint64_t free_below_ = 0;        ///< the places of so many operations
    std::uint64_t room_for_ = 0;          ///< an operation for which there is room
};

}  // namespace rill::inline RILL_ABI::in_process

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_MEETING_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_MEETING_HPP

// ===== rill/transport/detail/meeting.hpp

// By what activities of one rank meet, for transports whose activities are threads or share one.

namespace rill::inline RILL_ABI::detail {

/// A flag that activities of one rank wait for. Its waits belong to no context: only an abort of all contexts ends
/// them. `Place` is made from the endpoint: `wait(until, ready)` there looks again after each `ring()`.
template <class Place>
class meeting_flag {
  public:
    explicit meeting_flag(Place place) : place_(place) {}
    meeting_flag(const meeting_flag&) = delete;
    meeting_flag& operator=(const meeting_flag&) = delete;

    void set() {
        set_.store(true, std::memory_order_release);
        place_.ring();
    }
    void reset() { set_.store(false, std::memory_order_relaxed); }
    /// False when `until` has passed.
    bool wait(deadline until) {
        return place_.wait(until, [this] { return set_.load(std::memory_order_acquire); });
    }

  private:
    Place place_;
    std::atomic<bool> set_{false};
};

/// Passes values between activities of one rank, first in, first out; unbounded. Its waits belong to no context.
template <class T, class Place>
class meeting_queue {
  public:
    explicit meeting_queue(Place place) : place_(place) {}
    meeting_queue(const meeting_queue&) = delete;
    meeting_queue& operator=(const meeting_queue&) = delete;

    void push(T value) {
        {
            const std::lock_guard lock(mutex_);
            RILL_EXPECTS(!closed_, "queue: push to a closed queue");
            values_.push_back(std::move(value));
        }
        place_.ring();
    }
    /// Empty when `until` has passed, or when the queue is closed and all its values have been taken.
    std::optional<T> pop(deadline until) {
        std::optional<T> value;
        place_.wait(until, [&] {
            const std::lock_guard lock(mutex_);
            if (taken_ == values_.size()) return closed_;
            value.emplace(std::move(values_[taken_++]));
            if (2 * taken_ < values_.size()) return true;
            values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
            taken_ = 0;
            return true;
        });
        return value;
    }
    /// Ends the waits of those who pop, now and later, once the values are taken.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        place_.ring();
    }

  private:
    Place place_;
    std::mutex mutex_;
    std::vector<T> values_;
    std::size_t taken_ = 0;  ///< leading values that are gone
    bool closed_ = false;
};

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_MEETING_HPP

// ===== rill/transport/detail/in_process_meeting.hpp

namespace rill::inline RILL_ABI::in_process {

class endpoint;

namespace detail {

/// Where threads of one rank wait for each other: one of its bells.
class meeting_place {
  public:
    meeting_place(endpoint& net);  // NOLINT(google-explicit-constructor): an endpoint says where

    template <class Ready>
    bool wait(deadline until, Ready&& ready) {
        return world_->meet(*bell_, rank_, until, std::forward<Ready>(ready));
    }
    void ring() { bell_->ring(); }

  private:
    world* world_;
    rank_t rank_;
    bell* bell_;
};

}  // namespace detail

/// A flag that activities of one rank wait for.
using event = rill::detail::meeting_flag<detail::meeting_place>;
/// Passes values between activities of one rank, first in, first out.
template <class T>
using queue = rill::detail::meeting_queue<T, detail::meeting_place>;

}  // namespace rill::inline RILL_ABI::in_process

// ===== rill/transport/detail/in_process_message.hpp

namespace rill::inline RILL_ABI::in_process {

/// A received message. Its pieces lie in the sender's memory, or in the buffer that was handed over; destroying it lets
/// the sender go on.
class message {
  public:
    rank_t source() const { return node_->source; }
    byte_pieces pieces() const { return node_->pieces; }

  private:
    friend class endpoint;
    struct releaser {
        detail::world* of;
        void operator()(detail::node* read) const noexcept { of->release(*read); }
    };

    message(detail::world& world, detail::node& taken) : node_(&taken, {&world}) {}

    std::unique_ptr<detail::node, releaser> node_;
};

/// A borrowed send under way: done when the receiver has destroyed its message.
class sending {
  public:
    sending() = default;

    bool done() noexcept { return node_ == nullptr || retired_if(node_->marks.load(std::memory_order_acquire)); }

    /// True when done, false when `until` has passed; throws what ended the context.
    bool wait(deadline until) {
        return done() || world().wait(node_->source, node_->on, until, [this] { return released(); });
    }

    /// Withdraws the message if nobody has taken it, otherwise waits until it has been read.
    void settle() noexcept {
        if (done()) return;
        if (world().withdraw(*node_)) return retire();
        world().wait_regardless(node_->source, node_->on, [this] { return released(); });
    }

  private:
    friend class endpoint;
    /// Withdraws what nobody has taken; what is being read its reader retires.
    struct abandoner {
        detail::world* of;
        void operator()(detail::node* posted) const noexcept {
            const bool withdrawn = of->withdraw(*posted);
            if (withdrawn || (posted->marks.fetch_or(detail::node::abandoned, std::memory_order_acq_rel) &
                              detail::node::released) != 0)
                of->at(posted->receiver).box.retire(*posted);
        }
    };

    sending(detail::world& world, detail::node* posted) : node_(posted, {&world}) {}

    detail::world& world() const { return *node_.get_deleter().of; }

    void retire() noexcept {
        detail::node& done = *node_.release();
        world().at(done.receiver).box.retire(done);
    }
    bool retired_if(unsigned marks) noexcept {
        if ((marks & detail::node::released) == 0) return false;
        retire();
        return true;
    }
    /// Asks to be woken by the release, or finds that it has happened.
    bool released() noexcept {
        return retired_if(node_->marks.fetch_or(detail::node::awaited, std::memory_order_acq_rel));
    }

    std::unique_ptr<detail::node, abandoner> node_;
};

}  // namespace rill::inline RILL_ABI::in_process

// ===== rill/transport/detail/in_process_run.hpp

namespace rill::inline RILL_ABI::in_process::detail {

/// The threads of the ranks and what they throw.
class rank_threads {
  public:
    explicit rank_threads(world& shared) : world_(shared), thrown_(static_cast<std::size_t>(shared.size())) {}

    /// Returns when all have ended; rethrows the exception of the culprit, or else of the first rank that threw.
    void run(void (*body)(void*, world&, rank_t), void* context) {
        std::vector<std::thread> threads;
        std::exception_ptr not_started;
        try {
            threads.reserve(thrown_.size());
            for (rank_t rank = 0; rank < world_.size(); ++rank)
                threads.emplace_back([this, body, context, rank] { run_one(body, context, rank); });
        } catch (const std::exception& reason) {
            not_started = std::current_exception();
            const auto rank = static_cast<rank_t>(threads.size());
            world_.abort({.context = every_context,
                          .culprit = rank,
                          .reason = "no thread for rank " + std::to_string(rank) + ": " + reason.what()});
        }
        for (std::thread& each : threads) each.join();
        if (not_started) std::rethrow_exception(not_started);
        rethrow();
    }

  private:
    void run_one(void (*body)(void*, world&, rank_t), void* context, rank_t rank) noexcept {
        try {
            body(context, world_, rank);
        } catch (const error& caught) {
            abort_notice notice = world_.origin_of(caught.notice()).value_or(caught.notice());
            if (notice.culprit == no_rank) notice.culprit = rank;
            fail(rank, std::move(notice));
        } catch (const std::exception& caught) {
            fail(rank, {.culprit = rank, .reason = "rank " + std::to_string(rank) + " failed: " + caught.what()});
        } catch (...) {
            fail(rank, {.culprit = rank,
                        .reason = "rank " + std::to_string(rank) + " failed: an exception that is no std::exception"});
        }
    }

    void fail(rank_t rank, abort_notice notice) {
        thrown_[static_cast<std::size_t>(rank)] = std::current_exception();
        notice.context = every_context;
        {
            const std::lock_guard lock(mutex_);
            if (first_ == no_rank) first_ = rank;
        }
        world_.abort(notice);
    }

    void rethrow() {
        if (first_ == no_rank) return;
        const rank_t culprit = world_.aborted(every_context)->culprit;
        if (0 <= culprit && culprit < world_.size())
            if (const std::exception_ptr own = thrown_[static_cast<std::size_t>(culprit)]) std::rethrow_exception(own);
        std::rethrow_exception(thrown_[static_cast<std::size_t>(first_)]);
    }

    world& world_;
    std::vector<std::exception_ptr> thrown_;
    std::mutex mutex_;
    rank_t first_ = no_rank;
};

}  // namespace rill::inline RILL_ABI::in_process::detail

// ===== rill/transport/in_process.hpp

namespace rill::inline RILL_ABI::in_process {

/// One rank among threads of this process. Models `ConcurrentTransport`, so that any thread of the rank may call it,
/// and `SharedMemoryTransport`.
///
/// A borrowed message is read where it lies, in the sender's memory; a buffer that is handed over is moved. A post and
/// a receive allocate nothing once as many messages have been under way as ever will be. No message or sending may
/// outlive the `run` that it comes from. A context that a rank has closed is not used by it again.
class endpoint {
  public:
    using message = in_process::message;
    using sending = in_process::sending;
    using commons = in_process::commons;
    using activity = in_process::activity;
    using event = in_process::event;
    template <class T>
    using queue = in_process::queue<T>;

    endpoint(detail::world& world, rank_t rank) : world_(&world), rank_(rank) {}
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;

    rank_t rank() const { return rank_; }
    int size() const { return world_->size(); }
    time_point now() const { return detail::steady_now(); }
    traffic counted() const { return world_->counted(rank_); }

    void sleep_until(time_point instant) {
        world_->wait(rank_, every_context, instant, [] { return false; });
    }

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
        return world_->inquire(rank_, peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) { return world_->abort(notice); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return world_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return world_->next_context(rank_, key); }
    void close(std::uint64_t context) { world_->close(rank_, context); }

    commons share(std::uint64_t context) { return {*world_, rank_, context}; }

    /// Tells the activities of a rank apart: the same in all calls of one.
    const void* this_activity() const { return &detail::stop_requested; }

    template <class Body>
    activity spawn(Body body) {
        return {*world_, rank_, std::move(body)};
    }

  private:
    friend class detail::meeting_place;

    void check([[maybe_unused]] rank_t peer) const {
        RILL_EXPECTS(0 <= peer && peer < size(), "in_process: no such peer rank");
    }
    void check(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers) check(peer);
    }

    std::optional<message> wrap(detail::node* taken) {
        if (taken == nullptr) return std::nullopt;
        return message(*world_, *taken);
    }

    detail::world* world_;
    rank_t rank_;
};

inline detail::meeting_place::meeting_place(endpoint& net)
    : world_(net.world_), rank_(net.rank_), bell_(&world_->at(rank_).bells.of_meeting()) {}

static_assert(ConcurrentTransport<endpoint>);
static_assert(SharedMemoryTransport<endpoint>);

/// Calls `body(endpoint&)` on a thread per rank and returns when all have ended.
///
/// An exception that leaves a body aborts every context, with that rank as the culprit and what it says as the reason,
/// so that the waits of all other ranks throw; `run` then rethrows the culprit's own exception.
template <class Body>
void run(int ranks, Body&& body, const options& chosen = {}) {
    RILL_EXPECTS(ranks >= 1, "in_process::run: needs at least one rank");
    detail::world shared(ranks, chosen);
    detail::rank_threads threads(shared);
    threads.run(
        [](void* context, detail::world& world, rank_t rank) {
            endpoint net(world, rank);
            (*static_cast<std::remove_reference_t<Body>*>(context))(net);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}  // namespace rill::inline RILL_ABI::in_process

#endif  // RILL_SINGLE_TRANSPORT_IN_PROCESS_HPP
