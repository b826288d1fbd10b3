#pragma once

#include <rill/core/config.hpp>
#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/local_replica.hpp>
#include <rill/train/partial_replica.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `every`: how many steps a rank makes by itself. `outer`, `outer_rate`: the step of the model that all share, along
/// the mean of what the ranks have moved theirs by; as they are, it goes to the mean of the ranks' models.
struct local_sgd_options {
    std::uint32_t every = 32;
    train::sgd outer{};
    double outer_rate = 1;
};

/// What `local_sgd` returns.
template <class Optimizer, class Rate>
using local_sgd_plan =
    train::local_replica<train::partial_replica<topology::ring, straggler::all_ready, straggler::in_step,
                                                straggler::plain_sum, train::descent<train::sgd, train::constant_rate>>,
                         train::descent<Optimizer, Rate>>;

/// Local SGD (Stich 2019), on one ring: a plan for `train::asynchronous_trainer`. `optimizer` and `rate` are those of a
/// rank's own steps, which `rate` counts; rounds are what versions count. All ranks take part in each round, so the
/// slowest one sets the pace. With `{.every = 500, .outer = {.momentum = 0.9, .nesterov = true}, .outer_rate = 0.7}`,
/// and AdamW for the own steps, it is DiLoCo (Douillard et al. 2023).
template <class Optimizer, class Rate>
constexpr local_sgd_plan<Optimizer, Rate> local_sgd(const local_sgd_options& chosen, const Optimizer& optimizer,
                                                    const Rate& rate) {
    return {{{}, {}, {}, {}, {chosen.outer, {chosen.outer_rate}, false}, {}}, {chosen.every}, {optimizer, rate}};
}

}}}  // namespace rill::RILL_ABI::systems
