#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/in_process_activity.hpp>
#include <rill/transport/detail/in_process_bell.hpp>
#include <rill/transport/detail/in_process_meeting.hpp>
#include <rill/transport/detail/in_process_message.hpp>
#include <rill/transport/detail/in_process_run.hpp>
#include <rill/transport/detail/in_process_window.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process {

/// One rank among threads of this process. Models `ConcurrentTransport` (any thread of the rank may call it),
/// `SharedMemoryTransport` and `MonitoredTransport`.
///
/// A receiver reads a borrowed message in the sender's memory; a buffer that is handed over is moved. Posts and
/// receives allocate only while more messages are under way than ever before. No message or sending may outlive its
/// `run`. A rank must not use a context again that it has closed.
class endpoint {
  public:
    using message = in_process::message;
    using sending = in_process::sending;
    using window = in_process::window;
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
        world_->wait_commonly(rank_, {every_context}, instant, [] { return false; });
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
    abort_notice abort(const abort_notice& notice) { return world_->abort(rank_, notice); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return world_->aborted(rank_, context); }
    std::uint64_t next_context(std::uint64_t key) { return world_->next_context(rank_, key); }
    void close(std::uint64_t context) { world_->close(rank_, context); }

    std::uint64_t incarnation(rank_t peer) const {
        check(peer);
        return world_->incarnation(peer);
    }
    void monitor(channel on) { world_->monitor(rank_, on); }
    void fence(rank_t peer, std::uint64_t incarnation) {
        check(peer);
        world_->fence(rank_, peer, incarnation);
    }
    /// Calls the run's body as a rank on a free seat; false where `seat` is not free. A seat is taken once.
    bool start(rank_t seat) {
        check(seat);
        return world_->start(seat);
    }

    window share(std::uint64_t context) { return {*world_, rank_, context}; }

    /// Identifies the calling activity among those of its rank.
    const void* this_activity() const { return &detail::stop_requested; }
    bool activities_run_alone() const { return true; }

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
        return message(world_, *taken);
    }

    detail::world* world_;
    rank_t rank_;
};

inline detail::meeting_place::meeting_place(endpoint& net)
    : world_(net.world_), rank_(net.rank_), bell_(&world_->at(rank_).bells.of_meeting()) {}

static_assert(ConcurrentTransport<endpoint>);
static_assert(SharedMemoryTransport<endpoint>);
static_assert(MonitoredTransport<endpoint>);

namespace detail {
template <class Endpoint>
void run_ranks(int ranks, function_ref<void(Endpoint&)> body, const options& chosen) {
    world shared(ranks, chosen);
    rank_threads threads(
        shared,
        [](void* context, world& world, rank_t rank) {
            Endpoint net(world, rank);
            (*static_cast<function_ref<void(Endpoint&)>*>(context))(net);
        },
        &body);
    threads.run(ranks);
}
}  // namespace detail

/// Calls `body(endpoint&)` on one thread per rank and returns when all have ended.
///
/// An exception that leaves a body aborts every context: that rank is the culprit, and the exception's text is the
/// reason. The waits of all other ranks then throw, and `run` rethrows the culprit's own exception. Ranks that monitor
/// (`MonitoredTransport`) are told that the rank has ended, and go on; `run` rethrows when all have ended.
template <class Body>
void run(int ranks, Body&& body, const options& chosen = {}) {
    RILL_EXPECTS(ranks >= 1, "in_process::run: needs at least one rank");
    detail::run_ranks<endpoint>(ranks, body, chosen);
}

}}}  // namespace rill::RILL_ABI::in_process
