#pragma once

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
#include <rill/transport/detail/mail_activity.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_meeting.hpp>
#include <rill/transport/detail/mail_message.hpp>
#include <rill/transport/detail/mail_run.hpp>
#include <rill/transport/detail/mpi_environment.hpp>
#include <rill/transport/detail/mpi_library.hpp>
#include <rill/transport/detail/mpi_options.hpp>
#include <rill/transport/detail/mpi_port.hpp>
#include <rill/transport/detail/mpi_registry.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

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
class endpoint {
  public:
    using message = mpi::message;
    using sending = mpi::sending;
    using activity = mpi::activity;
    using event = mpi::event;
    template <class T>
    using queue = mpi::queue<T>;

    /// MPI must be running: see `environment`.
    explicit endpoint(MPI_Comm processes, const options& chosen = {}) {
        RILL_EXPECTS(chosen.eager_bytes >= mail::least_eager_bytes && chosen.eager_bytes <= std::size_t{1} << 30,
                     "mpi: eager_bytes must be between 1024 and 2^30");
        RILL_EXPECTS(chosen.abort_timeout.ns >= 0 && chosen.failure_timeout.ns >= 0,
                     "mpi: abort_timeout and failure_timeout must not be negative");
        if (!detail::is_running())
            throw library_error(no_rank, "MPI is not running: make a rill::mpi::environment first");
        engine_ = detail::registry::instance().open(processes, chosen);
    }
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;
    ~endpoint() { engine_->close(); }

    rank_t rank() const { return engine_->rank(); }
    int size() const { return engine_->size(); }
    time_point now() const { return engine_->now(); }
    traffic counted() const { return engine_->counted(); }
    mpi::thread_level thread_level() const { return engine_->through().level(); }
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
        detail::engine::node* const found = engine_->receive_into(peer, on, targets, until);
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

    /// Throws std::logic_error where activities would be fibers and the system does not support them.
    template <class Body>
    activity spawn(Body body) {
        return {*engine_, body};
    }

  private:
    friend class mail::meeting_place<detail::port>;
    template <class Body>
    friend void mpi::run(MPI_Comm processes, Body&& body, const options& chosen);

    void check([[maybe_unused]] rank_t peer) const {
        RILL_EXPECTS(0 <= peer && peer < size(), "mpi: no such peer rank");
    }
    void check(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers) check(peer);
    }

    std::optional<message> wrap(detail::engine::node* taken) {
        if (taken == nullptr) return std::nullopt;
        return message(engine_, *taken);
    }

    std::shared_ptr<detail::engine> engine_;
};

static_assert(ConcurrentTransport<endpoint> && ExpectingTransport<endpoint> && ChunkingTransport<endpoint>);

template <class Body>
void run(MPI_Comm processes, Body&& body, const options& chosen) {
    endpoint net(processes, chosen);
    struct start {
        endpoint& net;
        std::remove_reference_t<Body>& body;
    } own{net, body};
    mail::rank_run(*net.engine_)
        .run(
            [](void* given) {
                start& of = *static_cast<start*>(given);
                of.body(of.net);
            },
            &own);
}
/// Runs `body` on all processes: on MPI_COMM_WORLD.
template <class Body>
void run(Body&& body, const options& chosen = {}) {
    run(MPI_COMM_WORLD, std::forward<Body>(body), chosen);
}

}}}  // namespace rill::RILL_ABI::mpi
