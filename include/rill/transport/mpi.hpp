#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/transport/detail/mail_endpoint.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mpi_environment.hpp>
#include <rill/transport/detail/mpi_library.hpp>
#include <rill/transport/detail/mpi_options.hpp>
#include <rill/transport/detail/mpi_port.hpp>
#include <rill/transport/detail/mpi_registry.hpp>

#include <cstddef>
#include <memory>
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
