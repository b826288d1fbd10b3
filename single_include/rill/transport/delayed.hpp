// rill 0.1.0: <rill/transport/delayed.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_DELAYED_HPP
#define RILL_SINGLE_TRANSPORT_DELAYED_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/delayed.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/delayed.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_TRANSPORT_ANY_MODEL_HPP
#define RILL_SINGLE_TRANSPORT_ANY_MODEL_HPP

// ===== rill/transport/any_model.hpp

namespace rill::inline RILL_ABI {

/// A function of the user's choice with a signature of ours, or none: how networks and machines are described. Copies
/// share it, so it must answer the same question alike every time; it must be callable as a constant.
template <class Signature>
class any_model;

template <class Result, class... Arguments>
class any_model<Result(Arguments...)> {
  public:
    any_model() = default;
    template <class Function>
        requires(!std::same_as<std::remove_cvref_t<Function>, any_model> &&
                 std::is_invocable_r_v<Result, const Function&, Arguments...>)
    any_model(Function function)  // NOLINT(google-explicit-constructor): a function is a model
        : function_(std::make_shared<const Function>(std::move(function))), call_([](const void* f, Arguments... of) {
              return static_cast<Result>((*static_cast<const Function*>(f))(of...));
          }) {}

    explicit operator bool() const { return function_ != nullptr; }
    /// There must be one.
    Result operator()(Arguments... of) const { return call_(function_.get(), of...); }

    /// Whether they are copies of each other.
    friend bool operator==(const any_model&, const any_model&) = default;

  private:
    std::shared_ptr<const void> function_;
    Result (*call_)(const void*, Arguments...) = nullptr;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_ANY_MODEL_HPP

#ifndef RILL_SINGLE_TRANSPORT_COMPUTE_TIMES_HPP
#define RILL_SINGLE_TRANSPORT_COMPUTE_TIMES_HPP

// ===== rill/transport/compute_times.hpp

namespace rill::inline RILL_ABI {

/// Says how long a rank computes: `model(rank, number, work)` for its `number`-th computation, from 0, of `work` units,
/// which are data points unless the program means something else. Any function of that shape is one; the same arguments
/// must give the same time, so that a run can be repeated.
template <class M>
concept ComputeModel = requires(const M& model, rank_t rank, std::uint64_t number, double work) {
    { model(rank, number, work) } -> std::convertible_to<duration>;
};

/// Any `ComputeModel`, or none.
using compute_model = any_model<duration(rank_t rank, std::uint64_t number, double work)>;

namespace detail {

/// `seconds`, which is not negative, as a duration; stops at the end of the range.
inline duration duration_of(double seconds) {
    constexpr double most = 9.2e9;
    RILL_EXPECTS(seconds >= 0, "a computation cannot take less than no time");
    return seconds >= most ? nanoseconds(INT64_MAX) : duration(std::llround(seconds * 1e9));
}

/// Uniform in (0, 1], of a rank's computation.
inline double uniform_of(std::uint64_t seed, rank_t rank, std::uint64_t number) {
    const std::uint64_t bits = mix64(seed, static_cast<unsigned>(rank), number);
    return static_cast<double>((bits >> 11U) + 1) * 0x1p-53;
}

}  // namespace detail

/// The same time for each unit of work.
struct constant_compute {
    duration unit{};

    duration operator()(rank_t, std::uint64_t, double work) const { return detail::duration_of(unit.seconds() * work); }
};

/// A time for each unit of work that is drawn for the whole computation, uniform between two bounds.
struct uniform_compute {
    duration least{};
    duration most{};
    std::uint64_t seed = 0;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        const double u = detail::uniform_of(seed, rank, number);
        return detail::duration_of((least.seconds() + (most - least).seconds() * u) * work);
    }
};

/// A fixed time for each unit and an exponential one whose mean grows with the work: of n units
/// shift · n + Exp(mean tail · n), the stragglers of CodedReduce, where a = shift and 1/μ = tail.
struct shifted_exponential {
    duration shift{};
    duration tail{};
    std::uint64_t seed = 0;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        const double u = detail::uniform_of(seed, rank, number);
        return detail::duration_of((shift.seconds() - tail.seconds() * std::log(u)) * work);
    }
};

/// Another model's times, of which there must be one, each rank's multiplied by its factor; ranks beyond the list have
/// factor 1.
struct slowed_ranks {
    compute_model times;
    std::vector<double> factors;

    duration operator()(rank_t rank, std::uint64_t number, double work) const {
        RILL_EXPECTS(times, "slowed_ranks: needs the times that are multiplied");
        const auto i = static_cast<std::size_t>(rank);
        return detail::duration_of(times(rank, number, work).seconds() * (i < factors.size() ? factors[i] : 1.0));
    }
};

/// Measured times: a row for each rank, one after the other, from the first again after the last; the work is not
/// looked at. Ranks beyond the rows begin with the first row again. `read_compute_trace` reads one from a file.
class compute_trace {
  public:
    /// At least one row, and in each at least one time, none negative.
    explicit compute_trace(std::vector<std::vector<duration>> rows) : rows_(std::move(rows)) {
        RILL_EXPECTS(!rows_.empty(), "compute_trace: needs the times of a rank");
        for (const auto& row : rows_) {
            RILL_EXPECTS(!row.empty(), "compute_trace: a rank has at least one time");
            for ([[maybe_unused]] const duration each : row)
                RILL_EXPECTS(each.ns >= 0, "compute_trace: no time is negative");
        }
    }

    const std::vector<std::vector<duration>>& rows() const { return rows_; }

    duration operator()(rank_t rank, std::uint64_t number, double) const {
        const auto& row = rows_[static_cast<std::size_t>(rank) % rows_.size()];
        return row[number % row.size()];
    }

  private:
    std::vector<std::vector<duration>> rows_;
};

/// Says that this rank computes `work` units now, anywhere in a program: on a transport that has a model of computing
/// (`simulated`, `delayed`, and what is around them) it takes the time that the model says; on others it takes none,
/// because there the program itself does.
template <class Net>
void compute(Net& net, double work) {
    if constexpr (requires { net.compute(work); }) net.compute(work);
}

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_COMPUTE_TIMES_HPP

#ifndef RILL_SINGLE_TRANSPORT_DELAYS_HPP
#define RILL_SINGLE_TRANSPORT_DELAYS_HPP

// ===== rill/transport/delays.hpp

namespace rill::inline RILL_ABI {

/// What a message costs on its way (the α-β model): `bytes / bandwidth` on the link of its sender, then `latency`.
struct delays {
    duration latency = microseconds(50);
    std::uint64_t bandwidth = 125'000'000;  ///< bytes per second that a rank can send; 0: without limit

    constexpr duration transfer(std::uint64_t bytes) const { return transfer_time(bytes, bandwidth); }
    friend constexpr bool operator==(const delays&, const delays&) = default;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_DELAYS_HPP

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

// ===== rill/transport/detail/delayed_concurrency.hpp

namespace rill::inline RILL_ABI {

template <Transport Net>
class delayed;

namespace detail {

/// What a delayed transport offers only where the inner one does; within a rank nothing is delayed.
template <class Net>
struct delayed_concurrency {};

template <ConcurrentTransport Net>
struct delayed_concurrency<Net> {
    using activity = typename Net::activity;

    class event : public Net::event {
      public:
        explicit event(delayed<Net>& net) : Net::event(net.inner()) {}
    };

    template <class T>
    class queue : public Net::template queue<T> {
      public:
        explicit queue(delayed<Net>& net) : Net::template queue<T>(net.inner()) {}
    };
};

}  // namespace detail
}  // namespace rill::inline RILL_ABI

// ===== rill/transport/detail/delayed_inbox.hpp

namespace rill::inline RILL_ABI::detail {

/// A message of the transport below, and when it is due.
template <class Message>
struct early_message {
    Message inner;
    channel on{};
    time_point due{};
    byte_pieces pieces{};

    bool is_for(std::span<const rank_t> peers, channel wanted) const {
        return on == wanted && std::find(peers.begin(), peers.end(), inner.source()) != peers.end();
    }
};

/// Messages that somebody has taken from the transport below before they were due. Any activity may call it.
template <class Message>
class delayed_inbox {
  public:
    using held = early_message<Message>;

    void hold(held&& early) {
        const std::lock_guard lock(mutex_);
        held_.push_back(std::move(early));
    }

    /// When the next one is due, or never.
    deadline next_due(std::span<const rank_t> peers, channel on) const {
        const std::lock_guard lock(mutex_);
        deadline next = deadline::never;
        for (const held& each : held_)
            if (each.is_for(peers, on)) next = std::min(next, deadline(each.due));
        return next;
    }

    /// The one that was due first, if any is due.
    std::optional<held> take(std::span<const rank_t> peers, channel on, time_point now) {
        const std::lock_guard lock(mutex_);
        std::size_t best = held_.size();
        for (std::size_t i = 0; i < held_.size(); ++i)
            if (held_[i].due <= now && held_[i].is_for(peers, on) &&
                (best == held_.size() || held_[i].due < held_[best].due))
                best = i;
        return take_at(best);
    }

    /// The one that was due last, if any is due; the others that are due are dropped.
    std::optional<held> take_latest(std::span<const rank_t> peers, channel on, time_point now) {
        const std::lock_guard lock(mutex_);
        std::size_t best = held_.size();
        for (std::size_t i = 0; i < held_.size(); ++i)
            if (held_[i].due <= now && held_[i].is_for(peers, on) &&
                (best == held_.size() || held_[i].due >= held_[best].due))
                best = i;
        std::optional<held> latest = take_at(best);
        drop_if([&](const held& each) { return each.due <= now && each.is_for(peers, on); });
        return latest;
    }

    void drop(std::uint64_t context) {
        const std::lock_guard lock(mutex_);
        drop_if([&](const held& each) { return each.on.context == context; });
    }

  private:
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
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/transport/detail/delayed_link.hpp

namespace rill::inline RILL_ABI::detail {

/// The one link by which a rank sends: messages occupy it one after the other, in the order in which they ask for it.
class delayed_link {
  public:
    explicit delayed_link(const delays& chosen) : chosen_(chosen) {}

    const delays& chosen() const { return chosen_; }

    /// The time of a message on the link.
    struct slot {
        time_point start{}, end{}, due{};
    };

    slot reserve(time_point now, std::size_t bytes) {
        const duration length = chosen_.transfer(bytes);
        std::int64_t free_at = free_at_.load(std::memory_order_relaxed);
        time_point start, end;
        do {
            start = std::max(now, time_point{free_at});
            end = start + length;
        } while (!free_at_.compare_exchange_weak(free_at, end.ns, std::memory_order_relaxed));
        return {start, end, end + chosen_.latency};
    }

    /// Of a message that was not sent after all; too late when another has come behind it.
    void give_back(const slot& unused) {
        std::int64_t free_at = unused.end.ns;
        free_at_.compare_exchange_strong(free_at, unused.start.ns, std::memory_order_relaxed);
    }

  private:
    delays chosen_;
    std::atomic<std::int64_t> free_at_{0};
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/transport/detail/delayed_stamp.hpp

namespace rill::inline RILL_ABI::detail {

/// How long a message is under way is written behind it: the instant at which it is due.
inline constexpr std::size_t stamp_bytes = sizeof(time_point::ns);

/// What a borrowed message carries behind the caller's bytes. Its address is fixed until it is given back.
struct stamp {
    std::byte due[stamp_bytes];
    buffer joined{};  ///< the last of the caller's pieces and `due`, where a message has no room for one piece more
};

/// The stamps of messages under way. Allocates only while more are in use than ever before.
class stamp_pool {
  public:
    /// `pieces` without the empty ones, and the stamp behind them.
    std::pair<stamp*, byte_pieces> put_behind(const byte_pieces& pieces, time_point due) {
        stamp* const taken = take();
        std::memcpy(taken->due, &due.ns, stamp_bytes);
        byte_pieces stamped;
        for (const byte_view piece : pieces) {
            if (piece.empty()) continue;
            if (stamped.count() + 1 == byte_pieces::most) return {taken, join(stamped, piece, *taken)};
            stamped.push(piece);
        }
        stamped.push(taken->due);
        return {taken, stamped};
    }

    void give_back(stamp* unused) noexcept {
        const std::lock_guard lock(mutex_);
        unused_.push_back(unused);  // has room for all
    }

  private:
    static byte_pieces join(byte_pieces stamped, byte_view last, stamp& own) {
        own.joined.assign(last.begin(), last.end());
        own.joined.insert(own.joined.end(), own.due, own.due + stamp_bytes);
        stamped.push(own.joined);
        return stamped;
    }

    stamp* take() {
        const std::lock_guard lock(mutex_);
        if (unused_.empty()) {
            if (unused_.capacity() <= stamps_.size()) unused_.reserve(2 * stamps_.size() + 16);
            return &stamps_.emplace_back();
        }
        stamp* const taken = unused_.back();
        unused_.pop_back();
        return taken;
    }

    std::mutex mutex_;
    std::deque<stamp> stamps_;
    std::vector<stamp*> unused_;
};

/// A message taken apart.
struct unstamped {
    time_point due{};
    byte_pieces pieces{};
};

/// A transport below may have joined or split the pieces: the stamp is the last bytes, wherever they lie.
inline unstamped take_stamp(const byte_pieces& received, rank_t source, rank_t self) {
    const std::size_t size = received.size_bytes();
    if (size < stamp_bytes)
        throw protocol_error(
            "rank " + std::to_string(self) + " received " + std::to_string(size) + " bytes from rank " +
            std::to_string(source) +
            ", less than the time stamp of a delayed transport: it is delayed on all ranks or on none");
    std::byte due[stamp_bytes];
    std::size_t payload = size - stamp_bytes, read = 0;
    unstamped result;
    for (const byte_view piece : received) {
        const std::size_t kept = std::min(payload, piece.size());
        if (kept > 0) result.pieces.push(piece.first(kept));
        payload -= kept;
        const byte_view rest = piece.subspan(kept);
        std::copy(rest.begin(), rest.end(), due + read);
        read += rest.size();
    }
    std::memcpy(&result.due.ns, due, stamp_bytes);
    return result;
}

}  // namespace rill::inline RILL_ABI::detail

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_TRAFFIC_COUNTER_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_TRAFFIC_COUNTER_HPP

// ===== rill/transport/detail/traffic_counter.hpp

namespace rill::inline RILL_ABI::detail {

/// Counts what several activities send and receive.
class traffic_counter {
  public:
    void sent(std::size_t bytes) { add(messages_sent_, bytes_sent_, bytes); }
    void received(std::size_t bytes) { add(messages_received_, bytes_received_, bytes); }
    traffic now() const {
        constexpr auto relaxed = std::memory_order_relaxed;
        return {messages_sent_.load(relaxed), bytes_sent_.load(relaxed), messages_received_.load(relaxed),
                bytes_received_.load(relaxed)};
    }

  private:
    using counter = std::atomic<std::uint64_t>;

    static void add(counter& messages, counter& sum, std::size_t bytes) {
        messages.fetch_add(1, std::memory_order_relaxed);
        sum.fetch_add(bytes, std::memory_order_relaxed);
    }

    counter messages_sent_{0}, bytes_sent_{0}, messages_received_{0}, bytes_received_{0};
};

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_TRAFFIC_COUNTER_HPP

// ===== rill/transport/delayed.hpp

namespace rill::inline RILL_ABI {

/// A transport on which messages take time, on the inner one's clock: a network of one's choice among threads, say, to
/// see on two cores what a cluster would do. Models what the inner one models.
///
/// A message becomes receivable `bytes / bandwidth + latency` after it was posted. A rank has one link, which its
/// messages occupy one after the other: what is sent at the same time shares the bandwidth. Messages to oneself and the
/// control channel take no time. All ranks must be delayed, and their clocks must be one.
///
/// Borrowed messages are still read where they lie. Eight bytes travel behind each message and are not counted; a
/// buffer that is handed over is copied unless it has that much capacity to spare. A message that a receiver has waited
/// for counts as taken, even if its deadline passes first. Two activities must not wait at once for messages of one
/// channel from the same rank. Must outlive its messages and sendings.
template <Transport Net>
class delayed : public detail::delayed_concurrency<Net> {
  public:
    class message;
    class sending;

    /// Without a model, computing takes no time.
    explicit delayed(Net& inner, const delays& chosen = {}, compute_model computing = {})
        : inner_(&inner), link_(chosen), computing_(std::move(computing)) {}
    delayed(const delayed&) = delete;
    delayed& operator=(const delayed&) = delete;

    Net& inner() const { return *inner_; }
    const delays& chosen() const { return link_.chosen(); }

    rank_t rank() const { return std::as_const(*inner_).rank(); }
    int size() const { return std::as_const(*inner_).size(); }
    time_point now() const { return std::as_const(*inner_).now(); }
    traffic counted() const { return counted_.now(); }
    void sleep_until(time_point instant) { inner_->sleep_until(instant); }
    /// Takes as long as computing would, and no core: more ranks than cores can compute at once.
    void compute(duration length) { sleep_until(now() + length); }
    /// The same, as long as the model says.
    void compute(double work) {
        RILL_EXPECTS(work >= 0, "delayed: nobody computes less than nothing");
        if (computing_) compute(computing_(rank(), computations_.fetch_add(1, std::memory_order_relaxed), work));
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        const std::size_t size = pieces.size_bytes();
        const auto [stamp, stamped] = stamps_.put_behind(pieces, reserve(peer, size).due);
        sending posted(*this, on.context, stamp);
        posted.inner_ = inner_->post(peer, on, stamped);
        counted_.sent(size);
        return posted;
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        const std::size_t size = bytes.size();
        const auto slot = reserve(peer, size);
        bytes.resize(size + detail::stamp_bytes);
        std::memcpy(bytes.data() + size, &slot.due.ns, detail::stamp_bytes);
        if (inner_->post(peer, on, std::move(bytes), until)) return counted_.sent(size), true;
        bytes.resize(size);
        if (peer != rank()) link_.give_back(slot);
        return false;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return await({&peer, 1}, on, until, [&](time_point at) { return inbox_.take({&peer, 1}, on, at); });
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        if (peers.size() > 1) collect(peers, on);  // the earliest is not always the first that was posted
        return await(peers, on, until, [&](time_point at) { return inbox_.take(peers, on, at); });
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        collect(peers, on);
        return await(peers, on, until, [&](time_point at) { return inbox_.take_latest(peers, on, at); });
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        const auto received = receive(peer, on, until);
        if (received) detail::copy_message(rank(), *received, on, targets);
        return received.has_value();
    }

    /// Into no place of the caller's: with the stamp behind it the message is longer.
    void expect(rank_t peer, channel on, std::span<const byte_span>)
        requires ExpectingTransport<Net>
    {
        inner_->expect(peer, on, {});
    }
    void forget(channel on) noexcept
        requires ExpectingTransport<Net>
    {
        inner_->forget(on);
    }
    std::size_t chunk_bytes() const
        requires requires(const Net& net) { net.chunk_bytes(); }
    {
        return std::as_const(*inner_).chunk_bytes();
    }

    void announce(std::uint64_t context, const call_signature& call) { inner_->announce(context, call); }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        return inner_->inquire(peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) { return inner_->abort(notice); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return inner_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return inner_->next_context(key); }
    void close(std::uint64_t context) {
        inbox_.drop(context);
        inner_->close(context);
    }

    const void* this_activity() const
        requires requires(const Net& net) { net.this_activity(); }
    {
        return std::as_const(*inner_).this_activity();
    }

    bool activities_run_alone() const
        requires requires(const Net& net) { net.activities_run_alone(); }
    {
        return std::as_const(*inner_).activities_run_alone();
    }

    template <class Body>
    auto spawn(Body body)
        requires ConcurrentTransport<Net>
    {
        return inner_->spawn(std::move(body));
    }

  private:
    using inbox = detail::delayed_inbox<typename Net::message>;

    detail::delayed_link::slot reserve(rank_t peer, std::size_t bytes) {
        const time_point posted = now();
        return peer == rank() ? detail::delayed_link::slot{posted, posted, posted} : link_.reserve(posted, bytes);
    }

    /// Takes a message from the transport below, due or not; false when none came until then.
    bool take_one(std::span<const rank_t> peers, channel on, deadline until) {
        auto received = inner_->receive(peers, on, until);
        if (!received) return false;
        const auto content = detail::take_stamp(received->pieces(), received->source(), rank());
        inbox_.hold({std::move(*received), on, content.due, content.pieces});
        return true;
    }
    void collect(std::span<const rank_t> peers, channel on) {
        guarded(on, [&] {
            while (take_one(peers, on, deadline::immediate)) {
            }
        });
    }

    template <class Take>
    std::optional<message> await(std::span<const rank_t> peers, channel on, deadline until, Take take) {
        return guarded(on, [&]() -> std::optional<message> {
            while (true) {
                if (auto due = take(now())) {
                    counted_.received(due->pieces.size_bytes());
                    return message(std::move(*due));
                }
                const deadline next = inbox_.next_due(peers, on);
                // From one rank nothing can come before what is under way already.
                const bool in_order = peers.size() == 1 && !next.is_never();
                const bool came = take_one(in_order ? peers.first(0) : peers, on, std::min(next, until));
                if (!came && until < next) return std::nullopt;
            }
        });
    }

    template <class Call>
    auto guarded(channel on, Call&& call) -> decltype(call()) {
        try {
            return call();
        } catch (...) {
            drop_if_ended(on.context);
            throw;
        }
    }
    /// What this rank holds of a context that has ended goes back: others wait until it has been released.
    void drop_if_ended(std::uint64_t context) {
        if (inner_->aborted(context)) inbox_.drop(context);
    }

    Net* inner_;
    detail::delayed_link link_;
    compute_model computing_;
    std::atomic<std::uint64_t> computations_{0};
    detail::stamp_pool stamps_;
    inbox inbox_;
    detail::traffic_counter counted_;
};

/// A message that is due.
template <Transport Net>
class delayed<Net>::message {
  public:
    rank_t source() const { return received_.inner.source(); }
    byte_pieces pieces() const { return received_.pieces; }

  private:
    friend delayed;
    explicit message(typename inbox::held&& due) : received_(std::move(due)) {}

    typename inbox::held received_;
};

/// A borrowed send under way, with the stamp behind it.
template <Transport Net>
class delayed<Net>::sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept
        : net_(other.net_),
          context_(other.context_),
          stamp_(std::exchange(other.stamp_, nullptr)),
          inner_(std::move(other.inner_)) {}
    sending& operator=(sending&& other) noexcept {
        sending moved(std::move(other));
        std::swap(net_, moved.net_);
        std::swap(context_, moved.context_);
        std::swap(stamp_, moved.stamp_);
        std::swap(inner_, moved.inner_);
        return *this;
    }
    // Somebody may still read the stamp of a send that is given up: it is not used again.

    bool done() { return concluded(inner_.done()); }
    bool wait(deadline until) { return concluded(inner_.wait(until)); }
    void settle() noexcept {
        if (stamp_ == nullptr) return;
        // The ranks may all be settling, each while it holds what another waits for.
        net_->drop_if_ended(context_);
        inner_.settle();
        concluded(true);
    }

  private:
    friend delayed;
    sending(delayed& net, std::uint64_t context, detail::stamp* stamp) : net_(&net), context_(context), stamp_(stamp) {}

    bool concluded(bool is_done) noexcept {
        if (is_done && stamp_ != nullptr) net_->stamps_.give_back(std::exchange(stamp_, nullptr));
        return is_done;
    }

    delayed* net_ = nullptr;
    std::uint64_t context_ = 0;
    detail::stamp* stamp_ = nullptr;
    typename Net::sending inner_;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_DELAYED_HPP
