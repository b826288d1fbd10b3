#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_activity.hpp>
#include <rill/transport/detail/simulated_meeting.hpp>
#include <rill/transport/detail/simulated_message.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_report.hpp>
#include <rill/transport/detail/simulated_world.hpp>
#include <rill/transport/detail/world_endpoint.hpp>

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
