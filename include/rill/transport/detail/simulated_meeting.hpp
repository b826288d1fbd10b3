#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/meeting.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/detail/simulated_world.hpp>

namespace rill { inline namespace RILL_ABI { namespace simulated {

class endpoint;

namespace detail {

/// Lets activities of one rank wait for each other.
template <waits_for Kind>
class meeting_place {
  public:
    meeting_place(endpoint& net);  // NOLINT(google-explicit-constructor): an endpoint says where

    template <class Ready>
    bool wait(deadline until, Ready&& ready) {
        do {
            world_->throw_if_ended({every_context});
            if (world_->passed(until)) return world_->poll(), ready();
            if (!world_->wait(waiting_, {.kind = Kind}, until)) return false;
        } while (!ready());
        return true;
    }
    void ring() { world_->activities().call_all(waiting_); }

  private:
    world* world_;
    wait_list waiting_;
};

}  // namespace detail

/// A flag that activities of one rank wait for.
using event = rill::detail::meeting_flag<detail::meeting_place<detail::waits_for::event>>;
/// Passes values between activities of one rank, first in, first out.
template <class T>
using queue = rill::detail::meeting_queue<T, detail::meeting_place<detail::waits_for::queue>>;

}}}  // namespace rill::RILL_ABI::simulated
