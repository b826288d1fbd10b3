#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/simulated_activity.hpp>
#include <rill/transport/detail/simulated_meeting.hpp>
#include <rill/transport/detail/simulated_message.hpp>
#include <rill/transport/detail/simulated_network.hpp>
#include <rill/transport/detail/simulated_report.hpp>
#include <rill/transport/detail/simulated_world.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

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
    /// Lets the time pass that `network::computing` gives for `work` units.
    void compute(double work) { world_->compute(rank_, work); }
    /// How often this rank has been killed and begun anew.
    int restarts() const { return world_->restarts(rank_); }

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
        return world_->incarnation(rank_, peer);
    }
    void monitor(channel on) { world_->monitor(rank_, on); }
    void fence(rank_t peer, std::uint64_t incarnation) {
        check(peer);
        world_->fence(rank_, peer, incarnation);
    }

    /// Identifies the calling activity among those of its rank.
    const void* this_activity() const { return &world_->current(); }
    bool activities_run_alone() const { return true; }

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
        return message(world_, *taken);
    }

    detail::world* world_;
    rank_t rank_;
};

inline event::event(endpoint& net) : world_(net.world_) {}

static_assert(ConcurrentTransport<endpoint>);
static_assert(ComputingTransport<endpoint>);
static_assert(MonitoredTransport<endpoint>);

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

}}}  // namespace rill::RILL_ABI::simulated
