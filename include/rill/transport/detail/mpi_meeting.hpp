#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/meeting.hpp>
#include <rill/transport/detail/mpi_engine.hpp>
#include <rill/transport/detail/mpi_fiber_team.hpp>

#include <memory>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mpi {

class endpoint;

namespace detail {

/// Lets activities of one rank wait for each other. Waits poll their condition and make progress meanwhile.
class meeting_place {
  public:
    meeting_place(endpoint& net);  // NOLINT(google-explicit-constructor): an endpoint says where

    template <class Ready>
    bool wait(deadline until, Ready&& ready) {
        return engine_->wait({every_context}, until, std::forward<Ready>(ready));
    }
    /// Lets fibers of this thread test their conditions now, so that one that gets work sends its first messages at
    /// once.
    void ring() {
        if (fiber_team& sharing = engine_->fibers(); !sharing.is_inside()) sharing.take_turns();
    }

  private:
    std::shared_ptr<engine> engine_;
};

}  // namespace detail

/// A flag that activities of one rank wait for.
using event = rill::detail::meeting_flag<detail::meeting_place>;
/// Passes values between activities of one rank, first in, first out.
template <class T>
using queue = rill::detail::meeting_queue<T, detail::meeting_place>;

}}}  // namespace rill::RILL_ABI::mpi
