#pragma once

#include <rill/core/config.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/train/decentralized.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `gossip_grad` returns.
template <class Optimizer, class Rate>
using gossip_grad_strategy = train::decentralized<topology::rotating, Optimizer, Rate>;

/// GossipGraD (Daily et al. 2018): a strategy for `train::trainer`. Each rank moves its model along its own gradient
/// and averages it with that of one other rank, which is 1, 2, 4, … further in an order that changes every log2 P
/// steps. Deviation: images are not passed on around a ring.
template <class Optimizer, class Rate>
constexpr gossip_grad_strategy<Optimizer, Rate> gossip_grad(const Optimizer& optimizer, const Rate& rate) {
    return {{}, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems
