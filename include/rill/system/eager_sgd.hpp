#pragma once

#include <rill/core/config.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/partial_replica.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `eager_sgd` returns.
template <class Start, class Optimizer, class Rate>
using eager_sgd_plan = train::partial_replica<topology::recursive_doubling, Start, straggler::in_step,
                                              straggler::plain_sum, train::descent<Optimizer, Rate>>;

/// Eager-SGD (Li et al. 2020): a plan for `train::asynchronous_trainer`. A round starts with one rank drawn at random
/// (`majority`: on average half of the ranks are ready) or with the first that is ready (`solo`); a late gradient
/// counts in the next round. `rate` multiplies the sum of the gradients of a round.
template <class Optimizer, class Rate, class Start = straggler::majority>
constexpr eager_sgd_plan<Start, Optimizer, Rate> eager_sgd(const Optimizer& optimizer, const Rate& rate,
                                                           const Start& start = {}) {
    return {{}, start, {}, {}, {optimizer, rate}, {}};
}

}}}  // namespace rill::RILL_ABI::systems
