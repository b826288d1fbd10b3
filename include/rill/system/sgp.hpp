#pragma once

#include <rill/core/config.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/train/decentralized.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `sgp` returns.
template <class Optimizer, class Rate, class Mix>
using sgp_strategy = train::decentralized<Mix, Optimizer, Rate>;

/// Stochastic gradient push (Assran et al. 2019): a strategy for `train::trainer`. Each rank moves its model along its
/// own gradient and pushes it to one other rank: 1, 2, 4, … further. There all push-sum weights are 1 and none is sent;
/// over `topology::directed` models and weights are pushed, and gradients are those at their quotient.
template <class Optimizer, class Rate, class Mix = topology::exponential>
constexpr sgp_strategy<Optimizer, Rate, Mix> sgp(const Optimizer& optimizer, const Rate& rate, const Mix& mixing = {}) {
    return {mixing, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems
