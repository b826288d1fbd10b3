#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_fiber_team.hpp>
#include <rill/transport/detail/meeting.hpp>

#include <memory>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Lets activities of one rank wait for each other. Waits poll their condition, or look again when it may have changed,
/// and make progress meanwhile.
template <class Port>
class meeting_place {
  public:
    template <class Endpoint>
    meeting_place(Endpoint& net)
        : engine_(net.engine_) {}  // NOLINT(google-explicit-constructor): an endpoint says where

    template <class Ready>
    bool wait(deadline until, Ready&& ready) {
        return engine_->wait({every_context}, until, std::forward<Ready>(ready));
    }
    /// Lets fibers of this thread test their conditions now, so that one that gets work sends its first messages at
    /// once; and threads that wait.
    void ring() {
        if (fiber_team& sharing = engine_->fibers(); !sharing.is_inside()) sharing.take_turns();
        engine_->rouse();
    }

  private:
    std::shared_ptr<engine<Port>> engine_;
};

/// A flag that activities of one rank wait for.
template <class Port>
using event = rill::detail::meeting_flag<meeting_place<Port>>;
/// Passes values between activities of one rank, first in, first out.
template <class T, class Port>
using queue = rill::detail::meeting_queue<T, meeting_place<Port>>;

}}}  // namespace rill::RILL_ABI::mail
