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

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What the endpoints have in common whose ranks share one object, the world: each call goes to it.
template <class World, class Message, class Sending>
class world_endpoint {
  public:
    using message = Message;
    using sending = Sending;

    world_endpoint(const world_endpoint&) = delete;
    world_endpoint& operator=(const world_endpoint&) = delete;

    rank_t rank() const { return rank_; }
    int size() const { return world_->size(); }
    traffic counted() const { return world_->counted(rank_); }

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
        if (received) copy_message(rank_, *received, on, targets);
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

    bool activities_run_alone() const { return true; }

  protected:
    world_endpoint(World& world, rank_t rank) : world_(&world), rank_(rank) {}
    ~world_endpoint() = default;

    void check([[maybe_unused]] rank_t peer) const { RILL_EXPECTS(0 <= peer && peer < size(), "no such peer rank"); }

    World* world_;
    rank_t rank_;

  private:
    void check(std::span<const rank_t> peers) const {
        for (const rank_t peer : peers) check(peer);
    }

    std::optional<message> wrap(auto* taken) {
        if (taken == nullptr) return std::nullopt;
        return message(world_, *taken);
    }
};

}}}  // namespace rill::RILL_ABI::detail
