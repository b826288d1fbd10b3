#pragma once

#include <rill/compress/keep_all.hpp>
#include <rill/core/config.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/decentralized.hpp>
#include <rill/train/step_order.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `d_squared` returns.
template <class Optimizer, class Rate, class Mix>
using d_squared_strategy = train::decentralized<Mix, Optimizer, Rate, compress::keep_all, train::d_squared>;

/// D² (Tang et al. 2018): a strategy for `train::trainer`. D-PSGD that takes the difference between the ranks'
/// gradients out, for ranks whose data differ. The mixing's eigenvalues must be above -⅓: a ring has them where a rank
/// keeps half of its own model.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr d_squared_strategy<Optimizer, Rate, Mix> d_squared(const Optimizer& optimizer, const Rate& rate,
                                                             const Mix& mixing = {.own = 0.5}) {
    return {mixing, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems
