#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/decorator.hpp>
#include <rill/transport/detail/traced_shared_memory.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/write_trace.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A transport that records what it does, and what its user names, into a log. Models `ConcurrentTransport`,
/// `MonitoredTransport`, `ExpectingTransport` and `SharedMemoryTransport` where the inner one does, so that collectives
/// go the way that they go without it.
///
/// Recorded are posts, receives that got a message or waited, waits for a send, an event or a queue, waits for what a
/// peer exposes, for room or for its leaving where memory is shared, and spans; times
/// are the transport's own. Cost: two readings of the clock and one event per call; no allocation. `write_trace` turns
/// the logs of all ranks into a picture. It must outlive its sendings; the log must outlive it.
template <Transport Net>
class traced : public detail::decorator<traced<Net>, Net>, public detail::traced_shared_memory<Net> {
    using forwarding = detail::decorator<traced, Net>;

  public:
    using message = typename Net::message;
    class sending;
    class span_guard;

    traced(Net& inner, trace_log& log) : forwarding(inner), log_(&log) { log.set_rank(inner.rank()); }

    using forwarding::now;
    trace_log& log() const { return *log_; }

    /// Records the time until the result is destroyed, under `name`, which must live as long as the log.
    [[nodiscard]] span_guard span(const char* name) const {
        return span_guard(*this, {.begin = now(), .name = name, .activity = activity_id()});
    }

    void sleep_until(time_point instant) {
        const span_guard asleep = span("sleep");
        inner_->sleep_until(instant);
    }
    void compute(double work)
        requires ComputingTransport<Net>
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
        entry.bytes = size_bytes(targets);
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

    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        const span_guard asking = span("inquire");
        return inner_->inquire(peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) {
        const span_guard aborting = span("abort");
        return inner_->abort(notice);
    }

    auto share(std::uint64_t context)
        requires SharedMemoryTransport<Net>
    {
        return typename traced::window(*this, context);
    }

  private:
    friend detail::decorator_concurrency<traced, Net>;
    friend detail::traced_shared_memory<Net>;
    using forwarding::inner_;

    const void* activity_id() const {
        if constexpr (ConcurrentTransport<Net>)
            return this->this_activity();
        else
            return nullptr;
    }

    trace_event of_peer(trace_event::what kind, const char* name, rank_t peer, channel on) const {
        return {.begin = now(), .name = name, .kind = kind, .peer = peer, .on = on, .activity = activity_id()};
    }
    span_guard waiting(const char* name, rank_t peer = no_rank, channel on = {}) const {
        return span_guard(*this, of_peer(trace_event::what::wait, name, peer, on));
    }

    template <class Wait>
    auto waited(const char* name, deadline until, Wait&& wait) const {
        const span_guard asleep = waiting(name);
        return wait(until);
    }

    /// Records an event that ends now; drops waits that took no time.
    void finish(trace_event entry) const noexcept {
        entry.end = now();
        if (entry.kind != trace_event::what::wait || entry.begin < entry.end) log_->record(entry);
    }
    /// Records a call that got nothing as a wait; drops it if it was only a poll.
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

    trace_log* log_;
};

/// A span in progress; recorded when it is destroyed.
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

}}  // namespace rill::RILL_ABI
