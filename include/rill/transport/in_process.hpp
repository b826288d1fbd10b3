#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_activity.hpp>
#include <rill/transport/detail/in_process_bell.hpp>
#include <rill/transport/detail/in_process_meeting.hpp>
#include <rill/transport/detail/in_process_message.hpp>
#include <rill/transport/detail/in_process_run.hpp>
#include <rill/transport/detail/in_process_window.hpp>
#include <rill/transport/detail/in_process_world.hpp>
#include <rill/transport/detail/world_endpoint.hpp>

#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process {

/// One rank among threads of this process. Models `ConcurrentTransport` (any thread of the rank may call it),
/// `SharedMemoryTransport` and `MonitoredTransport`.
///
/// A receiver reads a borrowed message in the sender's memory; a buffer that is handed over is moved. Posts and
/// receives allocate only while more messages are under way than ever before. No message or sending may outlive its
/// `run`. A rank must not use a context again that it has closed.
class endpoint : public rill::detail::world_endpoint<detail::world, message, sending> {
  public:
    using window = in_process::window;
    using activity = in_process::activity;
    using event = in_process::event;
    template <class T>
    using queue = in_process::queue<T>;

    endpoint(detail::world& world, rank_t rank) : world_endpoint(world, rank) {}

    time_point now() const { return detail::steady_now(); }
    void sleep_until(time_point instant) {
        world_->wait_commonly(rank_, {every_context}, instant, [] { return false; });
    }

    /// Calls the run's body as a rank on a free seat; false where `seat` is not free. A seat is taken once.
    bool start(rank_t seat) {
        check(seat);
        return world_->start(seat);
    }

    window share(std::uint64_t context) { return {*world_, rank_, context}; }

    /// Identifies the calling activity among those of its rank.
    const void* this_activity() const { return &detail::stop_requested; }

    template <class Body>
    activity spawn(Body body) {
        return {*world_, rank_, std::move(body)};
    }

  private:
    friend class detail::meeting_place;
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
    const auto each = [&body](endpoint& net) { body(net); };  // `body` may be a function
    detail::run_ranks<endpoint>(ranks, each, chosen);
}

}}}  // namespace rill::RILL_ABI::in_process
