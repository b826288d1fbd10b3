#pragma once

#include <rill/topology/split_allgather.hpp>
#include <rill/train/sign_bsp.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// signSGD with majority vote (Bernstein et al., ICML 2018): ranks vote with the signs of their gradients.
/// A rank sends and receives one bit for each parameter twice. Deviations: the owners of parts count the votes, in
/// place of one server; a tie is +1.
template <class Optimizer, class Rate>
using sign_sgd_strategy = train::sign_bsp<topology::split_allgather, Optimizer, Rate>;

/// Makes a strategy for `train::trainer`. `rate` is how far each parameter moves in a step, if the optimizer is `sgd`
/// without momentum.
template <class Optimizer, class Rate>
constexpr sign_sgd_strategy<Optimizer, Rate> sign_sgd(const Optimizer& optimizer, const Rate& rate) {
    return {{}, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems
