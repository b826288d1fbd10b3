#pragma once

#include <rill/topology/ring.hpp>
#include <rill/train/bsp.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// Parallel SGD over a ring all-reduce (Patarasuk and Yuan 2009; Horovod): the dense baseline.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using psgd_strategy = train::bsp<topology::ring, Optimizer, Rate, Clip>;

/// Makes a strategy for `train::trainer`. `rate` multiplies the mean gradient in the optimizer; `clip` acts on each
/// rank's own gradient.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr psgd_strategy<Optimizer, Rate, Clip> psgd(const Optimizer& optimizer, const Rate& rate,
                                                    const Clip& clip = {}) {
    return {{}, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems
