#pragma once

#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/train/partial_bsp.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `master_worker` and `sgd_ignoring_slowest` return.
template <class Completion, class Optimizer, class Rate>
using master_worker_strategy = train::partial_bsp<topology::star, Completion, Optimizer, Rate>;

/// A master that waits for every worker: the uncoded baseline of gradient coding. A strategy for `train::trainer`; rank
/// 0 is the master, `rate` multiplies the mean of the workers' gradients.
template <class Optimizer, class Rate>
constexpr master_worker_strategy<straggler::wait_all, Optimizer, Rate> master_worker(const Optimizer& optimizer,
                                                                                     const Rate& rate) {
    return {{}, {}, optimizer, rate};
}

/// A master that goes on without the `ignored` slowest workers and drops what comes later. A strategy for
/// `train::trainer`; rank 0 is the master, `rate` multiplies the mean of the gradients that came in time.
template <class Optimizer, class Rate>
constexpr master_worker_strategy<straggler::tolerate, Optimizer, Rate> sgd_ignoring_slowest(int ignored,
                                                                                            const Optimizer& optimizer,
                                                                                            const Rate& rate) {
    return {{}, {ignored}, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems
