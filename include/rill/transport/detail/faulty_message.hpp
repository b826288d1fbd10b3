#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A message of the inner transport, or what a monitored channel tells of a peer.
template <Transport Net>
class faulty_message {
  public:
    rank_t source() const { return source_; }
    byte_pieces pieces() const { return inner_ ? inner_->pieces() : byte_pieces(byte_view(told_)); }

    explicit faulty_message(typename Net::message&& received)
        : source_(received.source()), inner_(std::move(received)) {}
    faulty_message(rank_t peer, const peer_event& told) : source_(peer), told_(to_message(told)) {}

  private:
    rank_t source_;
    std::optional<typename Net::message> inner_;
    buffer told_;
};

/// A borrowed send in progress. If its message was lost, it is never done.
template <class Outer, Transport Net>
class faulty_sending {
  public:
    faulty_sending() = default;

    bool done() { return !is_lost_ && inner_.done(); }
    bool wait(deadline until) {
        if (net_ == nullptr) return true;
        return net_->alive_through(on_, until, [&](deadline at) {
            if (!is_lost_) return inner_.wait(at);
            net_->wait_in_vain(on_, at);
            return false;
        });
    }
    void settle() noexcept {
        if (!is_lost_) inner_.settle();
    }

  private:
    friend Outer;
    faulty_sending(Outer& net, channel on, typename Net::sending&& posted)
        : net_(&net), on_(on), inner_(std::move(posted)) {}
    faulty_sending(Outer& net, channel on) : net_(&net), on_(on), is_lost_(true) {}

    Outer* net_ = nullptr;
    channel on_{};
    bool is_lost_ = false;
    typename Net::sending inner_;
};

}}}  // namespace rill::RILL_ABI::detail
