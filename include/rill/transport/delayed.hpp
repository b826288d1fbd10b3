#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/peer_event.hpp>
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
#include <rill/core/view.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/delays.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/decorator.hpp>
#include <rill/transport/detail/delayed_inbox.hpp>
#include <rill/transport/detail/delayed_links.hpp>
#include <rill/transport/detail/delayed_message.hpp>
#include <rill/transport/detail/delayed_stamp.hpp>
#include <rill/transport/detail/traffic_counter.hpp>
#include <rill/transport/links.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A transport on which messages take time, on the inner one's clock: a network of one's choice among threads, say, to
/// see on two cores what a cluster would do. Models `ConcurrentTransport`, `ExpectingTransport` and
/// `MonitoredTransport` where the inner one does, and never `SharedMemoryTransport`: what ranks read in each other's
/// memory is no message, and would take no time.
///
/// A message becomes receivable `bytes / bandwidth + latency` after its post. Messages occupy a link one after the
/// other. With `delays` a rank has one link to all others, so that concurrent sends share the bandwidth; with a
/// `LinkModel`, such as `matrix_links`, it has one to each, as in a simulated network with the same `links`. Messages
/// to oneself and the control channel take no time. All ranks must use `delayed`, with equal links, and share one
/// clock.
///
/// A monitored channel tells the end of a peer one latency of its link after this rank has looked there and after all
/// that it holds of that peer; what the peer's link then still carries becomes due with the end. Other news of peers
/// take no time.
///
/// Borrowed messages are still read in the sender's memory. Sixteen extra bytes travel behind each message and are not
/// counted; a buffer that is handed over is copied unless it has sixteen bytes of spare capacity. A message counts as
/// taken once a receiver has waited for it, even if the receiver's deadline passes first. Two activities must not wait
/// at once for messages of one channel from the same rank. A `delayed` must outlive its messages and sendings. Memory:
/// 32 bytes for each link.
template <Transport Net>
class delayed : public detail::decorator<delayed<Net>, Net> {
    using forwarding = detail::decorator<delayed, Net>;

  public:
    using message = detail::delayed_message<typename Net::message>;
    using sending = detail::delayed_sending<delayed, Net>;

    /// Without `computing`, `compute(work)` takes no time.
    explicit delayed(Net& inner, const delays& chosen = {}, compute_model computing = {})
        : forwarding(inner), links_(chosen, inner.rank()), computing_(std::move(computing)), life_(own_life(inner)) {}
    /// A link from each rank to each other one. `links` is called here, for the links that begin or end at this rank.
    template <LinkModel Links>
    delayed(Net& inner, const Links& links, compute_model computing = {})
        : forwarding(inner),
          links_(links, inner.rank(), inner.size()),
          computing_(std::move(computing)),
          life_(own_life(inner)) {}

    using forwarding::now;
    using forwarding::rank;
    using forwarding::sleep_until;

    traffic counted() const { return counted_.now(); }
    /// Sleeps for `length` in place of computing. It uses no core, so more ranks than cores can compute at once.
    void compute(duration length) { sleep_until(now() + length); }
    /// Sleeps for the time that the model of computing gives for `work` units.
    void compute(double work) {
        RILL_EXPECTS(work >= 0, "delayed: the work of a computation must not be negative");
        if (computing_) compute(computing_(rank(), computations_.fetch_add(1, std::memory_order_relaxed), work));
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        const std::size_t size = pieces.size_bytes();
        const auto [stamp, stamped] = stamps_.put_behind(pieces, {reserve(peer, size).due, life_});
        sending posted(*this, on.context, stamp);
        posted.inner_ = inner_->post(peer, on, stamped);
        counted_.sent(size);
        return posted;
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        const std::size_t size = bytes.size();
        const auto slot = reserve(peer, size);
        bytes.resize(size + detail::stamp_bytes);
        detail::write_stamp(bytes.data() + size, {slot.due, life_});
        if (inner_->post(peer, on, std::move(bytes), until)) return counted_.sent(size), true;
        bytes.resize(size);
        if (peer != rank()) links_.give_back(peer, slot);
        return false;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return await({&peer, 1}, on, until, [&](time_point at) { return inbox_.take({&peer, 1}, on, at); });
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        if (peers.size() > 1) collect(peers, on);  // the message due first need not have been posted first
        return await(peers, on, until, [&](time_point at) { return inbox_.take(peers, on, at); });
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        collect(peers, on);
        return await(peers, on, until, [&](time_point at) { return inbox_.take(peers, on, at, true); });
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        const auto received = receive(peer, on, until);
        if (received) detail::copy_message(rank(), *received, on, targets);
        return received.has_value();
    }

    /// Passes on no targets: with its stamp the message is longer than they are.
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

    void monitor(channel on)
        requires MonitoredTransport<Net>
    {
        inbox_.monitor();
        inner_->monitor(on);
    }
    void fence(rank_t peer, std::uint64_t incarnation)
        requires MonitoredTransport<Net>
    {
        inner_->fence(peer, incarnation);
        inbox_.drop_life(peer, incarnation);
    }

    void close(std::uint64_t context) {
        inbox_.drop(context);
        inner_->close(context);
    }

  private:
    friend detail::decorator_concurrency<delayed, Net>;
    friend sending;
    using forwarding::inner_;
    using inbox = detail::delayed_inbox<typename Net::message>;

    detail::delayed_links::slot reserve(rank_t peer, std::size_t bytes) {
        const time_point posted = now();
        return peer == rank() ? detail::delayed_links::slot{posted, posted, posted}
                              : links_.reserve(posted, peer, bytes);
    }

    static std::uint64_t own_life([[maybe_unused]] const Net& inner) {
        if constexpr (MonitoredTransport<Net>)
            return inner.incarnation(inner.rank());
        else
            return 0;
    }

    /// Takes a message from the inner transport, due or not; false when none came before `until`.
    bool take_one(std::span<const rank_t> peers, channel on, deadline until) {
        auto received = receive_early(peers, on, until);
        if (!received) return false;
        const auto content = detail::take_stamp(received->pieces());
        if (content.is_stamped)
            inbox_.hold({std::move(*received), on, content.stamp.due, content.pieces, content.stamp.life});
        else
            hold_event(std::move(*received), on);
        return true;
    }
    /// Peers that have all ended make the inner transport throw, though messages of theirs may still be held.
    std::optional<typename Net::message> receive_early(std::span<const rank_t> peers, channel on, deadline until) {
        try {
            return inner_->receive(peers, on, until);
        } catch (const error&) {
            if (inner_->aborted(on.context) || inbox_.next_due(peers, on).is_never()) throw;
        }
        return inner_->receive(peers.first(0), on, until);
    }
    /// Holds what a monitored channel tells of a peer.
    void hold_event(typename Net::message&& received, channel on) {
        const rank_t source = received.source();
        const byte_pieces pieces = received.pieces();
        if constexpr (MonitoredTransport<Net>)
            if (pieces.size_bytes() == peer_event_bytes) {
                const peer_event news = read_peer_event(received);
                const time_point told = now();
                typename inbox::held early{std::move(received), on, told, pieces, news.incarnation};
                if (news.kind != peer_change::ended) return inbox_.hold(std::move(early));
                return inbox_.hold_end(std::move(early), told, told + links_.latency_from(source));
            }
        detail::throw_unstamped(pieces.size_bytes(), source, rank());
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
                // Messages of one rank become due in order: none can overtake one that is already held.
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
    /// Releases the held messages of a context that has ended, because their senders wait for the release.
    void drop_if_ended(std::uint64_t context) {
        if (inner_->aborted(context)) inbox_.drop(context);
    }

    detail::delayed_links links_;
    compute_model computing_;
    std::uint64_t life_;  ///< of this rank
    std::atomic<std::uint64_t> computations_{0};
    detail::stamp_pool stamps_;
    inbox inbox_;
    detail::traffic_counter counted_;
};

}}  // namespace rill::RILL_ABI
