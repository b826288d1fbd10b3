#pragma once

#include <rill/core/config.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/pair_replica.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `ad_psgd` returns.
template <class Optimizer, class Rate, class Who>
using ad_psgd_plan = train::pair_replica<Who, train::descent<Optimizer, Rate>>;

/// AD-PSGD (Lian et al. 2018): a plan for `train::asynchronous_trainer`. Each rank steps by itself and averages its
/// model with that of one other rank at a time, drawn among those that `who` allows: as in the paper, ranks of even
/// number ask those of odd number. `rate` multiplies each gradient; its steps are the moves of the rank's own model,
/// exchanges among them. The mean of all ranks' final parameters is the result.
template <class Optimizer, class Rate, class Who = topology::bipartite>
constexpr ad_psgd_plan<Optimizer, Rate, Who> ad_psgd(const Optimizer& optimizer, const Rate& rate,
                                                     const Who& who = {}) {
    return {who, {optimizer, rate}};
}

}}}  // namespace rill::RILL_ABI::systems
