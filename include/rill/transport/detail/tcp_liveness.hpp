#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What is due about a peer.
enum class liveness_step : std::uint8_t {
    nothing,
    heartbeat,  ///< the peer has not heard of this rank for an interval: say something
    dial,       ///< the connection is silent: make another one
    gone        ///< the peer has been silent for the whole patience; final
};

/// Decides from silence whether a connection is broken, and whether a peer is alive. An interval is an eighth of the
/// patience. A rank that has written nothing for an interval owes a heartbeat, so a live peer is silent for little more
/// than an interval. The connection counts as broken after half the patience, or where the peer owes an
/// acknowledgement, after 150 ms, or four times as long as such answers take if that is longer. Until the peer speaks
/// or another connection is made, this is told once. After the patience the peer counts as lost.
///
/// How long answers take is a mean that rises at once and falls slowly, and doubles where a connection counts as
/// broken: a busy peer is not dialled again and again.
///
/// A rank that is itself late by more than an interval has been stopped: then the silence says nothing about the peer,
/// and the patience begins anew. Does no I/O and reads no clock.
class liveness {
  public:
    /// `patience`: at least 1 ms; `now`: when the connection was made.
    liveness(duration patience, time_point now) : patience_(patience), heard_(now), spoke_(now), asked_(now) {
        RILL_EXPECTS(patience >= milliseconds(1), "tcp: the patience with a silent peer is at least 1 ms");
    }

    /// A connection was made.
    void met(time_point now) {
        heard_ = asked_ = now;
        has_dialed_ = false;
    }
    /// Bytes of the peer came; `owes`: it has not acknowledged all that was written.
    void heard(time_point now, bool owes) {
        if (owes_) usual_ = std::max(now - asked_, usual_ - usual_ / 8);
        owes_ = owes;
        met(now);
    }
    /// Bytes were written to the peer; `owes`: it must acknowledge them, or earlier ones.
    void spoke(time_point now, bool owes) {
        spoke_ = now;
        if (owes && !std::exchange(owes_, true)) asked_ = now;
    }

    /// Whether the peer counts as lost.
    bool is_gone() const { return gone_; }
    /// When `tick` has something to do at the earliest.
    deadline due() const {
        if (gone_) return deadline::never;
        return std::min({deadline(spoke_ + interval()), dial_at(), deadline(heard_ + patience_)});
    }
    /// What is due now. Each step is told once; call it again until it is `nothing`. Where more is due than one step,
    /// the graver one comes first.
    liveness_step tick(time_point now) {
        if (gone_ || deadline(now) < due()) return liveness_step::nothing;
        if (now - due().at > interval()) heard_ = asked_ = now;
        if (now >= heard_ + patience_) {
            gone_ = true;
            return liveness_step::gone;
        }
        if (dial_at() <= now) {
            has_dialed_ = true;
            if (asked_ + answer_time() <= now) usual_ = std::min(usual_ + usual_, patience_);
            return liveness_step::dial;
        }
        if (now < spoke_ + interval()) return liveness_step::nothing;
        spoke_ = now;
        return liveness_step::heartbeat;
    }

  private:
    duration interval() const { return patience_ / 8; }
    duration answer_time() const { return std::min(std::max(milliseconds(150), usual_ * 4), patience_ / 2); }
    deadline dial_at() const {
        if (has_dialed_) return deadline::never;
        const deadline silent = heard_ + patience_ / 2;
        return owes_ ? std::min(silent, deadline(asked_ + answer_time())) : silent;
    }

    duration patience_;
    time_point heard_, spoke_, asked_;   ///< `asked_`: since when the peer owes an acknowledgement and is silent
    duration usual_ = milliseconds(30);  ///< how long answers take; an acknowledgement may be put off for 20 ms
    bool owes_ = false, has_dialed_ = false, gone_ = false;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
