#pragma once

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
#include <rill/transport/detail/mail_port.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// What the endpoints over all ports have in common: each call goes to the engine.
template <class Port>
class endpoint {
  public:
    using message = mail::message<Port>;
    using sending = mail::sending<Port>;
    using activity = mail::activity<Port>;
    using event = mail::event<Port>;
    template <class T>
    using queue = mail::queue<T, Port>;

    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;

    rank_t rank() const { return engine_->rank(); }
    int size() const { return engine_->size(); }
    time_point now() const { return engine_->now(); }
    traffic counted() const { return engine_->counted(); }
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
        typename engine<Port>::node* const found = engine_->receive_into(peer, on, targets, until);
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

    // See `MonitoredTransport`.

    std::uint64_t incarnation(rank_t peer) const
        requires MonitoringPort<Port>
    {
        check(peer);
        return engine_->incarnation(peer);
    }
    void monitor(channel on)
        requires MonitoringPort<Port>
    {
        engine_->monitor(on);
    }
    void fence(rank_t peer, std::uint64_t incarnation)
        requires MonitoringPort<Port>
    {
        check(peer);
        engine_->fence(peer, incarnation);
    }

    /// Throws std::logic_error where activities would be fibers and the system does not support them.
    template <class Body>
    activity spawn(Body body) {
        return {*engine_, body};
    }

  protected:
    explicit endpoint(std::shared_ptr<engine<Port>> by) : engine_(std::move(by)) {}
    ~endpoint() = default;

    std::shared_ptr<engine<Port>> engine_;

  private:
    friend class meeting_place<Port>;

    void check([[maybe_unused]] rank_t peer) const { RILL_EXPECTS(0 <= peer && peer < size(), "no such peer rank"); }
    void check(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers) check(peer);
    }

    std::optional<message> wrap(typename engine<Port>::node* taken) {
        if (taken == nullptr) return std::nullopt;
        return message(engine_, *taken);
    }
};

}}}  // namespace rill::RILL_ABI::mail
