// The training plans: the length of a run, and the two strategies.
#pragma once

#include "arguments.hpp"
#include "images.hpp"

#include <rill/system/sparcml.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace demo {

inline std::uint64_t steps_of(const arguments& chosen, const images& data) {
    if (chosen.steps != 0) return chosen.steps;
    if (chosen.quick) return 300;
    return chosen.epochs * (data.training.rows / (static_cast<std::size_t>(chosen.ranks) * chosen.batch));
}

inline rill::train::warmup_cosine rate(double peak, std::uint64_t steps) {
    return {.peak = peak, .warmup = std::min<std::uint64_t>(50, steps / 5), .total = steps};
}

/// Sends dense gradients: every rank folds its part of them and sends the result to all.
inline auto dense_plan(const arguments& chosen, const images& data) {
    return rill::train::bsp{rill::topology::split_allgather{}, rill::train::sgd{.momentum = 0.9},
                            rate(0.1, steps_of(chosen, data))};
}

/// SparCML's quantised top-k SGD. The residual already delays entries, so the momentum is smaller than in the dense
/// run. The effective learning rate, peak / (1 - momentum), is that of the dense run.
inline auto sparse_plan(const arguments& chosen, const images& data) {
    return rill::systems::sparcml({.density = chosen.density,
                                   .bits = chosen.bits,
                                   .source_bits = chosen.source_bits,
                                   .bucket = chosen.bucket,
                                   .keep = chosen.keep},
                                  rill::train::sgd{.momentum = chosen.momentum},
                                  rate(1 - chosen.momentum, steps_of(chosen, data)));
}

}  // namespace demo
