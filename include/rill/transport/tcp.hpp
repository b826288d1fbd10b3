#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mail_endpoint.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/tcp_connections.hpp>
#include <rill/transport/detail/tcp_meeting.hpp>
#include <rill/transport/detail/tcp_options.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp {

/// A received message: see `mail::message`.
using message = mail::message<detail::connections>;
/// A borrowed send in progress: see `mail::sending`.
using sending = mail::sending<detail::connections>;
/// A thread of one rank: see `mail::activity`.
using activity = mail::activity<detail::connections>;
/// A flag that activities of one rank wait for.
using event = mail::event<detail::connections>;
/// Passes values between activities of one rank, first in, first out.
template <class T>
using queue = mail::queue<T, detail::connections>;

/// Calls `body(endpoint&)` as this process's rank of the job and returns when the bodies of all ranks have ended.
///
/// An exception that leaves a body ends the job: that rank is the culprit, and the exception's text is the reason. The
/// waits of all other ranks then throw. `run` throws on every rank: the exception of the rank's own body, or else the
/// error that names the culprit. `run` waits at most `options::failure_timeout` for ranks that have not noticed.
///
/// Ranks that monitor (`MonitoredTransport`) are told that the rank has ended, and go on; `run` does not wait for them.
template <class Body>
void run(Body&& body, const options& chosen = options::from_environment());

/// One rank of a job whose processes are connected by TCP. Models `ConcurrentTransport` and `MonitoredTransport`; needs
/// Linux.
///
/// Its constructor returns when all ranks have come. It throws `timeout` that names the ranks which have not come
/// within `options::meeting_timeout`; `mismatch` where two processes say that they are the same rank, or where keys,
/// jobs, versions or options differ; and `library_error` where the system refuses a call.
///
/// Two ranks connect when one of them first has a message for the other. Each rank also connects to the next one, to
/// notice its end. A lost connection is made anew, and each message still arrives once. A peer is gone when its process
/// has ended without a farewell, or when it says nothing for `options::patience`. Then all waits of all other ranks
/// throw `peer_failure` that names it. A peer whose endpoint was destroyed has left with a farewell. Then only waits
/// for this peer without a deadline throw, on ranks that had a connection with it.
///
/// On a rank that monitors, a loss or an exception ends nothing but waits for that peer, in contexts that are not
/// monitored. Silence is no end there: what was sent is kept, and arrives if the peer is heard again. Such a rank has a
/// connection with each peer.
///
/// Any thread of the rank may call it. A thread of the endpoint makes progress while no other one waits. The destructor
/// waits at most `options::farewell_timeout` until the peers have taken what was sent to them. Handed-over messages
/// larger than `eager_bytes` that no receiver has asked for are then lost. The destructor closes all sockets, also
/// those that listen: a peer that dials afterwards is refused, and so learns that this start of the rank has ended.
///
/// Memory: about 70 KiB per peer, at most `window_bytes` of copies per peer, and the messages that have arrived.
class endpoint : public mail::endpoint<detail::connections> {
  public:
    explicit endpoint(const options& chosen = options::from_environment()) : endpoint(meet(chosen), chosen) {}
    ~endpoint() {
        engine_->dismiss(ends_);
        if (attendant_.joinable()) attendant_.join();
        engine_->close();
        engine_->through().leave();
        engine_->end();
    }

  protected:
    /// Of ranks that have met.
    endpoint(detail::mesh&& met, const options& chosen)
        : mail::endpoint<detail::connections>(open(std::move(met), chosen)) {
        if (chosen.size() > 1) attendant_ = std::thread([this] { engine_->attend(ends_); });
    }

  private:
    std::atomic<bool> ends_{false};
    std::thread attendant_;

    template <class Body>
    friend void run(Body&& body, const options& chosen);

    static detail::mesh meet(const options& chosen) {
        RILL_EXPECTS(0 <= chosen.rank && chosen.rank < chosen.size(), "tcp: rank must be from 0 to ranks - 1");
        RILL_EXPECTS(chosen.size() <= options::most_ranks, "tcp: at most 65535 ranks and seats");
        RILL_EXPECTS(!chosen.comes_late() || chosen.seats != 0, "tcp: a process joins a job with seats");
        RILL_EXPECTS(chosen.eager_bytes >= mail::least_eager_bytes && chosen.eager_bytes <= std::size_t{1} << 30,
                     "tcp: eager_bytes must be between 1024 and 2^30");
        RILL_EXPECTS(chosen.mailbox_bytes > 0 && chosen.window_bytes > 0,
                     "tcp: mailbox_bytes and window_bytes must not be 0");
        RILL_EXPECTS(chosen.meeting_timeout.ns > 0 && chosen.patience >= milliseconds(1),
                     "tcp: meeting_timeout must be above 0, and patience at least 1 ms");
        RILL_EXPECTS(chosen.abort_timeout.ns >= 0 && chosen.failure_timeout.ns >= 0 && chosen.farewell_timeout.ns >= 0,
                     "tcp: abort_timeout, failure_timeout and farewell_timeout must not be negative");
        RILL_EXPECTS(chosen.security != security::encrypted || chosen.key || chosen.size() == 1,
                     "tcp: security::encrypted needs a key");
        return detail::meet(chosen);
    }
    static std::shared_ptr<detail::engine> open(detail::mesh&& met, const options& chosen) {
        auto made = std::make_shared<detail::engine>(detail::connections::place{met, chosen});
        made->open(chosen);
        return made;
    }
};

static_assert(ConcurrentTransport<endpoint> && ExpectingTransport<endpoint> && ChunkingTransport<endpoint> &&
              MonitoredTransport<endpoint>);

template <class Body>
void run(Body&& body, const options& chosen) {
    endpoint net(chosen);
    net.engine_->run([&] { body(net); });
}

}}}  // namespace rill::RILL_ABI::tcp
