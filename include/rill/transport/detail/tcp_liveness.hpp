#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What is due about a peer.
enum class liveness_step : std::uint8_t {
    nothing,
    heartbeat,  ///< the peer has not heard of this rank for an interval: say something
    dial,       ///< the connection is silent: make another one
    gone        ///< the peer has been silent for the whole patience; final
};

/// Decides from silence whether a peer is alive. An interval is an eighth of the patience. A rank that has written
/// nothing for an interval owes a heartbeat, so a live peer is silent for little more than an interval. After half the
/// patience the connection counts as broken and a new one is tried, once per interval; after all of it the peer counts
/// as lost.
///
/// A rank that is itself late by more than an interval has been stopped: then the silence says nothing about the peer,
/// and the patience begins anew. Does no I/O and reads no clock.
class liveness {
  public:
    /// `patience`: at least 1 ms; `now`: when the connection was made.
    liveness(duration patience, time_point now) : patience_(patience), heard_(now), spoke_(now), dialed_(now) {
        RILL_EXPECTS(patience >= milliseconds(1), "tcp: the patience with a silent peer is at least 1 ms");
    }

    /// Bytes of the peer came, or a connection to it was made.
    void heard(time_point now) { heard_ = now; }
    /// Bytes were written to the peer.
    void spoke(time_point now) { spoke_ = now; }

    /// When `tick` has something to do at the earliest.
    deadline due() const {
        if (gone_) return deadline::never;
        return std::min({spoke_ + interval(), dial_at(), heard_ + patience_});
    }
    /// What is due now. Each step is told once; call it again until it is `nothing`. Where more is due than one step,
    /// the graver one comes first.
    liveness_step tick(time_point now) {
        if (gone_ || deadline(now) < due()) return liveness_step::nothing;
        if (now - due().at > interval()) heard_ = dialed_ = now;
        if (now >= heard_ + patience_) {
            gone_ = true;
            return liveness_step::gone;
        }
        if (now >= dial_at()) {
            dialed_ = now;
            return liveness_step::dial;
        }
        if (now < spoke_ + interval()) return liveness_step::nothing;
        spoke_ = now;
        return liveness_step::heartbeat;
    }
    bool is_gone() const { return gone_; }

  private:
    duration interval() const { return patience_ / 8; }
    time_point dial_at() const { return std::max(heard_ + patience_ / 2, dialed_ + interval()); }

    duration patience_;
    time_point heard_, spoke_, dialed_;
    bool gone_ = false;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
