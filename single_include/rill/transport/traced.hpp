// rill 0.1.0: <rill/transport/traced.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_TRACED_HPP
#define RILL_SINGLE_TRANSPORT_TRACED_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/traced.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/traced.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// ===== rill/transport/detail/traced_concurrency.hpp

namespace rill::inline RILL_ABI {

template <Transport Net>
class traced;

namespace detail {

/// What a traced transport offers only where the inner one does.
template <class Net>
struct traced_concurrency {};

template <ConcurrentTransport Net>
struct traced_concurrency<Net> {
    using activity = typename Net::activity;

    class event {
      public:
        explicit event(traced<Net>& net) : net_(&net), inner_(net.inner()) {}

        void set() { inner_.set(); }
        void reset() { inner_.reset(); }
        bool wait(deadline until) {
            const auto waiting = net_->waiting("wait for event");
            return inner_.wait(until);
        }

      private:
        traced<Net>* net_;
        typename Net::event inner_;
    };

    template <class T>
    class queue {
      public:
        explicit queue(traced<Net>& net) : net_(&net), inner_(net.inner()) {}

        void push(T value) { inner_.push(std::move(value)); }
        std::optional<T> pop(deadline until) {
            const auto waiting = net_->waiting("wait for queue");
            return inner_.pop(until);
        }
        void close() { inner_.close(); }

      private:
        traced<Net>* net_;
        typename Net::template queue<T> inner_;
    };
};

}  // namespace detail
}  // namespace rill::inline RILL_ABI

#ifndef RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP
#define RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP

// ===== rill/transport/trace_log.hpp

namespace rill::inline RILL_ABI {

/// Something that took time on one rank.
struct trace_event {
    enum class what : std::uint8_t { post, receive, receive_latest, wait, span };

    time_point begin{};
    time_point end{};
    const char* name = "";  ///< lives as long as the log
    what kind = what::span;
    rank_t peer = no_rank;
    channel on{};
    std::uint64_t bytes = 0;
    const void* activity = nullptr;  ///< which one of its rank, where the transport tells
};

/// What one rank did, in the order in which it ended. Its memory is allocated and touched beforehand; what does not fit
/// is counted and dropped. Several activities may record at once; read it when they have ended.
class trace_log {
  public:
    /// Memory: 64 bytes for each event.
    explicit trace_log(std::size_t capacity = std::size_t{1} << 16) : events_(capacity) {}

    void record(const trace_event& event) noexcept {
        const std::size_t place = recorded_.fetch_add(1, std::memory_order_relaxed);
        if (place < events_.size()) events_[place] = event;
    }

    std::span<const trace_event> events() const { return std::span(events_).first(std::min(events_.size(), asked())); }
    std::size_t dropped() const { return asked() - events().size(); }
    void clear() { recorded_.store(0, std::memory_order_relaxed); }

    rank_t rank() const { return rank_; }
    void set_rank(rank_t rank) { rank_ = rank; }

  private:
    std::size_t asked() const { return recorded_.load(std::memory_order_relaxed); }

    std::vector<trace_event> events_;
    std::atomic<std::size_t> recorded_{0};
    rank_t rank_ = 0;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_TRACE_LOG_HPP

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_TRACE_ARROWS_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_TRACE_ARROWS_HPP

// ===== rill/transport/detail/trace_arrows.hpp

namespace rill::inline RILL_ABI::detail {

/// One end of a message in a trace.
struct arrow_end {
    rank_t source = no_rank;
    rank_t receiver = no_rank;
    channel on{};
    int track = 0;
    const trace_event* event = nullptr;

    std::strong_ordering compare(const arrow_end& other) const {
        if (const auto by = source <=> other.source; by != 0) return by;
        if (const auto by = receiver <=> other.receiver; by != 0) return by;
        return on <=> other.on;
    }
};
using arrow_ends = std::vector<arrow_end>;

inline void note_arrow_end(arrow_ends& posts, arrow_ends& receives, rank_t rank, int track, const trace_event& event) {
    using enum trace_event::what;
    if (event.kind == post) posts.push_back({rank, event.peer, event.on, track, &event});
    if (event.kind == receive || event.kind == receive_latest)
        receives.push_back({event.peer, rank, event.on, track, &event});
}

/// Where those from `first` on that belong to the same sender, receiver and channel end.
inline std::size_t end_of_lane(const arrow_ends& ends, std::size_t first) {
    std::size_t i = first;
    while (i < ends.size() && ends[i].compare(ends[first]) == 0) ++i;
    return i;
}

/// Pairs posts and receives: those of one sender, receiver and channel in order.
template <class Visit>
void for_each_arrow(arrow_ends& posts, arrow_ends& receives, Visit&& visit) {
    const auto by_lane = [](const arrow_end& a, const arrow_end& b) { return a.compare(b) < 0; };
    std::stable_sort(posts.begin(), posts.end(), by_lane);
    std::stable_sort(receives.begin(), receives.end(), by_lane);
    for (std::size_t p = 0, r = 0; p < posts.size() && r < receives.size();) {
        const auto order = posts[p].compare(receives[r]);
        const std::size_t p_end = end_of_lane(posts, p), r_end = end_of_lane(receives, r);
        if (order == 0) {
            const bool skips =
                std::any_of(receives.begin() + static_cast<std::ptrdiff_t>(r),
                            receives.begin() + static_cast<std::ptrdiff_t>(r_end),
                            [](const arrow_end& end) { return end.event->kind == trace_event::what::receive_latest; });
            for (std::size_t i = 0; !skips && i < std::min(p_end - p, r_end - r); ++i)
                visit(posts[p + i], receives[r + i]);
        }
        if (order <= 0) p = p_end;
        if (order >= 0) r = r_end;
    }
}

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_TRACE_ARROWS_HPP

#ifndef RILL_SINGLE_TRANSPORT_DETAIL_TRACE_TRACKS_HPP
#define RILL_SINGLE_TRANSPORT_DETAIL_TRACE_TRACKS_HPP

// ===== rill/transport/detail/trace_tracks.hpp

namespace rill::inline RILL_ABI::detail {

/// The tracks of one activity: an event goes where it nests, on the first one possible.
class activity_tracks {
  public:
    explicit activity_tracks(const void* of) : of_(of) {}

    const void* of() const { return of_; }
    std::size_t count() const { return open_until_.size(); }

    /// Events come by their begin, of those that begin together the longest first.
    std::size_t place(const trace_event& event) {
        std::size_t track = 0;
        for (; track < count(); ++track) {
            std::vector<time_point>& around = open_until_[track];
            while (!around.empty() && around.back() <= event.begin) around.pop_back();
            if (around.empty() || event.end <= around.back()) break;
        }
        if (track == count()) open_until_.emplace_back();
        open_until_[track].push_back(event.end);
        return track;
    }

  private:
    const void* of_;
    std::vector<std::vector<time_point>> open_until_;  ///< of the events around, per track
};

/// A track for each event: those of one activity together, the activities in the order of their first events.
inline std::vector<int> tracks_of(std::span<const trace_event> events) {
    std::vector<std::size_t> order(events.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const trace_event &x = events[a], &y = events[b];
        return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
    });
    std::vector<activity_tracks> activities;
    std::vector<std::size_t> owner(events.size()), track(events.size());
    for (const std::size_t i : order) {
        const auto own = std::find_if(activities.begin(), activities.end(),
                                      [&](const activity_tracks& each) { return each.of() == events[i].activity; });
        owner[i] = static_cast<std::size_t>(own - activities.begin());
        if (own == activities.end()) activities.emplace_back(events[i].activity);
        track[i] = activities[owner[i]].place(events[i]);
    }
    std::vector<std::size_t> before(activities.size() + 1);
    for (std::size_t a = 0; a < activities.size(); ++a) before[a + 1] = before[a] + activities[a].count();
    std::vector<int> tracks(events.size());
    for (std::size_t i = 0; i < tracks.size(); ++i) tracks[i] = static_cast<int>(before[owner[i]] + track[i]);
    return tracks;
}

}  // namespace rill::inline RILL_ABI::detail

#endif  // RILL_SINGLE_TRANSPORT_DETAIL_TRACE_TRACKS_HPP

#ifndef RILL_SINGLE_TRANSPORT_WRITE_TRACE_HPP
#define RILL_SINGLE_TRANSPORT_WRITE_TRACE_HPP

// ===== rill/transport/write_trace.hpp

namespace rill::inline RILL_ABI {

namespace detail {

inline void append_quoted(std::string& out, const char* text) {
    constexpr char digits[] = "0123456789abcdef";
    out += '"';
    for (; *text != '\0'; ++text) {
        const auto c = static_cast<unsigned char>(*text);
        if (c < 0x20) {
            out += "\\u00";
            out += digits[c >> 4];
            out += digits[c & 15];
            continue;
        }
        if (c == '"' || c == '\\') out += '\\';
        out += *text;
    }
    out += '"';
}

/// The objects of a trace, one per line.
class trace_writer {
  public:
    trace_writer(std::string& out, time_point zero) : out_(out), zero_(zero) {
        out_ += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    }

    void rank(const trace_log& log) {
        open("M", log.rank(), 0);
        out_ += ",\"name\":\"process_name\",\"args\":{\"name\":\"rank " + std::to_string(log.rank());
        if (log.dropped() > 0) out_ += " (" + std::to_string(log.dropped()) + " events did not fit)";
        out_ += "\"}}";
        open("M", log.rank(), 0);
        out_ += ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" + std::to_string(log.rank()) + "}}";
    }

    void event(rank_t rank, int track, const trace_event& e) {
        open("X", rank, track);
        time("ts", e.begin.ns - zero_.ns);
        time("dur", e.end.ns - e.begin.ns);
        out_ += ",\"name\":";
        append_quoted(out_, e.name);
        if (e.kind != trace_event::what::span) {
            out_ += ",\"args\":{\"peer\":" + std::to_string(e.peer) + ",\"bytes\":" + std::to_string(e.bytes);
            // As text: a context has 64 bits, a number in JSON 53.
            out_ += ",\"context\":\"" + std::to_string(e.on.context) + "\",\"tag\":" + std::to_string(e.on.tag) + "}";
        }
        out_ += '}';
    }

    void arrow(std::size_t id, const arrow_end& from, const arrow_end& to) {
        const std::int64_t sent = from.event->begin.ns;
        // Inside the receive, so that the viewer finds it, but not before the post.
        const std::int64_t got = std::max({sent, to.event->begin.ns, to.event->end.ns - 1});
        open("s", from.source, from.track);
        arrow_body(id, sent);
        out_ += '}';
        open("f", to.receiver, to.track);
        arrow_body(id, got);
        out_ += ",\"bp\":\"e\"}";
    }

    void end() { out_ += "\n]}\n"; }

  private:
    void open(const char* phase, rank_t rank, int track) {
        out_ += first_ ? "\n" : ",\n";
        first_ = false;
        out_ += "{\"ph\":\"";
        out_ += phase;
        out_ += "\",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(track);
    }
    void arrow_body(std::size_t id, std::int64_t at) {
        time("ts", at - zero_.ns);
        out_ += ",\"name\":\"message\",\"cat\":\"message\",\"id\":" + std::to_string(id);
    }
    /// The format counts microseconds.
    void time(const char* key, std::int64_t ns) {
        const std::string fraction = std::to_string(1000 + ns % 1000);
        out_ += ",\"";
        out_ += key;
        out_ += "\":" + std::to_string(ns / 1000) + "." + fraction.substr(1);
    }

    std::string& out_;
    time_point zero_;
    bool first_ = true;
};

}  // namespace detail

/// Appends the logs of all ranks as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing show: a process per rank,
/// a track per activity (and for spans that overlap without nesting), arrows from posts to receives. Times start at 0.
///
/// Arrows pair the posts and receives of a channel in order; a channel with a `receive_latest` has none, as it skips.
inline void write_trace(std::string& out, std::span<const trace_log> logs) {
    time_point zero{std::numeric_limits<std::int64_t>::max()};
    for (const trace_log& log : logs)
        for (const trace_event& event : log.events()) zero = std::min(zero, event.begin);
    detail::trace_writer writer(out, zero);
    detail::arrow_ends posts, receives;
    for (const trace_log& log : logs) {
        writer.rank(log);
        const std::vector<int> tracks = detail::tracks_of(log.events());
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            const trace_event& event = log.events()[i];
            writer.event(log.rank(), tracks[i], event);
            detail::note_arrow_end(posts, receives, log.rank(), tracks[i], event);
        }
    }
    std::size_t id = 0;
    detail::for_each_arrow(posts, receives, [&](const auto& from, const auto& to) { writer.arrow(++id, from, to); });
    writer.end();
}

/// Writes the same to a file; throws `std::runtime_error` when it cannot.
inline void write_trace(std::FILE* file, std::span<const trace_log> logs) {
    std::string text;
    write_trace(text, logs);
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0)
        throw std::runtime_error("rill: the trace cannot be written to its file");
}

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_WRITE_TRACE_HPP

// ===== rill/transport/traced.hpp

namespace rill::inline RILL_ABI {

/// A transport that records what it does, and what its user names, into a log. Models what the inner one models.
///
/// Recorded are posts, receives that got a message or waited, waits for a send, an event or a queue, and spans; times
/// are the transport's own. Cost: two readings of the clock and one event per call; no allocation. `write_trace` turns
/// the logs of all ranks into a picture. It must outlive its sendings; the log must outlive it.
template <Transport Net>
class traced : public detail::traced_concurrency<Net> {
  public:
    using message = typename Net::message;
    class sending;
    class span_guard;

    traced(Net& inner, trace_log& log) : inner_(&inner), log_(&log) { log.set_rank(inner.rank()); }
    traced(const traced&) = delete;
    traced& operator=(const traced&) = delete;

    Net& inner() const { return *inner_; }
    trace_log& log() const { return *log_; }

    /// Records the time until the result is destroyed. `name` lives as long as the log.
    [[nodiscard]] span_guard span(const char* name) const {
        return span_guard(*this, {.begin = now(), .name = name, .activity = this_activity()});
    }

    rank_t rank() const { return std::as_const(*inner_).rank(); }
    int size() const { return std::as_const(*inner_).size(); }
    time_point now() const { return std::as_const(*inner_).now(); }
    traffic counted() const { return std::as_const(*inner_).counted(); }
    void sleep_until(time_point instant) {
        const span_guard asleep = span("sleep");
        inner_->sleep_until(instant);
    }
    void compute(double work)
        requires requires(Net& net) { net.compute(work); }
    {
        const span_guard computing = span("compute");
        inner_->compute(work);
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        trace_event entry = of_peer(trace_event::what::post, "post", peer, on);
        entry.bytes = pieces.size_bytes();
        typename Net::sending posted = inner_->post(peer, on, pieces);
        finish(entry);
        return sending(*this, peer, on, std::move(posted));
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        trace_event entry = of_peer(trace_event::what::post, "post", peer, on);
        entry.bytes = bytes.size();
        const bool taken = inner_->post(peer, on, std::move(bytes), until);
        taken ? finish(entry) : finish_in_vain(entry, "post refused", until);
        return taken;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        const trace_event entry = of_peer(trace_event::what::receive, "receive", peer, on);
        return received(entry, until, inner_->receive(peer, on, until));
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        const trace_event entry = of_peer(trace_event::what::receive, "receive", no_rank, on);
        return received(entry, until, inner_->receive(peers, on, until));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        const trace_event entry = of_peer(trace_event::what::receive_latest, "receive latest", no_rank, on);
        return received(entry, until, inner_->receive_latest(peers, on, until));
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        trace_event entry = of_peer(trace_event::what::receive, "receive", peer, on);
        for (const byte_span target : targets) entry.bytes += target.size();
        const bool came = inner_->receive_into(peer, on, targets, until);
        came ? finish(entry) : finish_in_vain(entry, "receive nothing", until);
        return came;
    }

    void expect(rank_t peer, channel on, std::span<const byte_span> targets)
        requires ExpectingTransport<Net>
    {
        inner_->expect(peer, on, targets);
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
        const span_guard asking = span("inquire");
        return inner_->inquire(peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) {
        const span_guard aborting = span("abort");
        return inner_->abort(notice);
    }
    std::optional<abort_notice> aborted(std::uint64_t context) { return inner_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return inner_->next_context(key); }
    void close(std::uint64_t context) { inner_->close(context); }

    const void* this_activity() const {
        if constexpr (requires { std::as_const(*inner_).this_activity(); })
            return std::as_const(*inner_).this_activity();
        else
            return nullptr;
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
    friend detail::traced_concurrency<Net>;

    trace_event of_peer(trace_event::what kind, const char* name, rank_t peer, channel on) const {
        return {.begin = now(), .name = name, .kind = kind, .peer = peer, .on = on, .activity = this_activity()};
    }
    span_guard waiting(const char* name, rank_t peer = no_rank, channel on = {}) const {
        return span_guard(*this, of_peer(trace_event::what::wait, name, peer, on));
    }

    /// Waits that did not wait are not worth an entry, …
    void finish(trace_event entry) const noexcept {
        entry.end = now();
        if (entry.kind != trace_event::what::wait || entry.begin < entry.end) log_->record(entry);
    }
    /// … nor is what only looked.
    void finish_in_vain(trace_event entry, const char* name, deadline until) const noexcept {
        if (until.is_immediate()) return;
        entry.kind = trace_event::what::wait;
        entry.name = name;
        entry.bytes = 0;
        finish(entry);
    }

    std::optional<message> received(trace_event entry, deadline until, std::optional<message>&& got) const {
        if (got) {
            entry.peer = got->source();
            entry.bytes = got->pieces().size_bytes();
        }
        got ? finish(entry) : finish_in_vain(entry, "receive nothing", until);
        return std::move(got);
    }

    Net* inner_;
    trace_log* log_;
};

/// Time that its user has named; recorded when it is destroyed.
template <Transport Net>
class traced<Net>::span_guard {
  public:
    span_guard(const span_guard&) = delete;
    span_guard& operator=(const span_guard&) = delete;
    ~span_guard() { net_.finish(entry_); }

  private:
    friend traced;
    span_guard(const traced& net, const trace_event& entry) : net_(net), entry_(entry) {}

    const traced& net_;
    trace_event entry_;
};

template <Transport Net>
class traced<Net>::sending {
  public:
    sending() = default;

    bool done() { return posted_.done(); }
    bool wait(deadline until) {
        if (net_ == nullptr) return true;
        const span_guard waiting = net_->waiting("wait for send", peer_, on_);
        return posted_.wait(until);
    }
    void settle() noexcept { posted_.settle(); }

  private:
    friend traced;
    sending(const traced& net, rank_t peer, channel on, typename Net::sending&& posted)
        : net_(&net), peer_(peer), on_(on), posted_(std::move(posted)) {}

    const traced* net_ = nullptr;
    rank_t peer_ = no_rank;
    channel on_{};
    typename Net::sending posted_;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_TRACED_HPP
