#pragma once

#include <rill/compress/keep_all.hpp>
#include <rill/core/config.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/step_order.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `d_psgd` returns.
template <class Optimizer, class Rate, class Mix>
using d_psgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::keep_all, train::mix_before>;

/// D-PSGD (Lian et al. 2017): a strategy for `train::trainer`. Each rank mixes its model with those of its neighbours
/// in a ring, or in a graph by `topology::metropolis`, and then moves it along its gradient at the model before. `rate`
/// multiplies each rank's own gradient.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr d_psgd_strategy<Optimizer, Rate, Mix> d_psgd(const Optimizer& optimizer, const Rate& rate,
                                                       const Mix& mixing = {}) {
    return {mixing, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems
