#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_world.hpp>
#include <rill/transport/detail/meeting.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process {

class endpoint;

namespace detail {

/// Lets threads of one rank wait for each other, at one of the rank's bells.
class meeting_place {
  public:
    meeting_place(endpoint& net);  // NOLINT(google-explicit-constructor): an endpoint says where

    template <class Ready>
    bool wait(deadline until, Ready&& ready) {
        return world_->meet(*bell_, rank_, until, std::forward<Ready>(ready));
    }
    void ring() { bell_->ring(); }

  private:
    world* world_;
    rank_t rank_;
    bell* bell_;
};

}  // namespace detail

/// A flag that activities of one rank wait for.
using event = rill::detail::meeting_flag<detail::meeting_place>;
/// Passes values between activities of one rank, first in, first out.
template <class T>
using queue = rill::detail::meeting_queue<T, detail::meeting_place>;

}}}  // namespace rill::RILL_ABI::in_process
