// The training plans: the length of a run, and the two strategies.
#pragma once

#include "arguments.hpp"
#include "images.hpp"

#include <rill/compress/error_feedback.hpp>
#include <rill/compress/with_codings.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/coding.hpp>
#include <rill/cost/choose.hpp>
#include <rill/system/sparcml.hpp>
#include <rill/topology/any.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/automatic.hpp>
#include <rill/train/bsp.hpp>
#include <rill/train/compressed_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace demo {

inline std::uint64_t steps_of(const arguments& chosen, const images& data) {
    if (chosen.steps != 0) return chosen.steps;
    if (chosen.quick) return 300;
    return chosen.epochs * (data.training.rows / (static_cast<std::size_t>(chosen.ranks) * chosen.batch));
}

inline rill::train::warmup_cosine rate(double peak, std::uint64_t steps) {
    return {.peak = peak, .warmup = std::min<std::uint64_t>(50, steps / 5), .total = steps};
}

inline rill::topology::any topology_of(const std::string& name) {
    using namespace rill::topology;
    for (const any& each : {any{recursive_doubling{}}, any{halving_doubling{}}, any{ring{}}, any{tree{}}, any{star{}}})
        if (name == each.shape_name()) return each;
    return split_allgather{};
}

/// Sends dense gradients: every rank folds its part of them and sends the result to all.
inline auto dense_strategy(const arguments& chosen, const images& data) {
    return rill::train::bsp{rill::topology::split_allgather{}, rill::train::sgd{.momentum = 0.9},
                            rate(0.1, steps_of(chosen, data))};
}

/// SparCML's quantised top-k SGD. The residual already delays entries, so the momentum is smaller than in the dense
/// run. The effective learning rate, peak / (1 - momentum), is that of the dense run.
inline auto sparse_strategy(const arguments& chosen, const images& data) {
    return rill::systems::sparcml({.density = chosen.density,
                                   .bits = chosen.bits,
                                   .source_bits = chosen.source_bits,
                                   .bucket = chosen.bucket,
                                   .keep = chosen.keep},
                                  rill::train::sgd{.momentum = chosen.momentum},
                                  rate(1 - chosen.momentum, steps_of(chosen, data)));
}

/// The strategy that `make` returns for the exchange that was asked for, or for the one that is measured to be fastest.
template <class Make>
rill::train::automatic<Make> plan_for(const arguments& chosen, const rill::cost::gradient_shape& gradient,
                                      const rill::stream_codings& codings, Make make) {
    if (chosen.topology == "auto") return {gradient, std::move(make)};
    rill::cost::exchange_choice given{
        .topology = topology_of(chosen.topology), .codings = codings, .compress = gradient.density < 1};
    if (!rill::has_copy_phase(given.topology)) given.codings.copy = given.codings.partial;
    return {given, std::move(make)};
}

/// `dense_strategy`, over any topology.
inline auto dense_plan(const arguments& chosen, const images& data) {
    const auto usual = dense_strategy(chosen, data);
    return plan_for(chosen, {}, {}, [usual](const rill::cost::exchange_choice& best) {
        return rill::train::bsp{best.topology, usual.optimizer, usual.rate};
    });
}

/// `sparse_strategy`, over any topology and with any codings.
inline auto sparse_plan(const arguments& chosen, const images& data) {
    const auto usual = sparse_strategy(chosen, data);
    const rill::stream_codings codings = usual.codec.compressor.codings();
    const double density =
        chosen.bucket == 0 ? chosen.density : static_cast<double>(chosen.keep) / static_cast<double>(chosen.bucket);
    const rill::cost::gradient_shape gradient{
        .density = density, .values = codings.contribution.values, .copy = codings.copy.values, .selects = true};
    return plan_for(chosen, gradient, codings, [usual](const rill::cost::exchange_choice& best) {
        namespace compress = rill::compress;
        const compress::error_feedback codec{compress::with_codings{usual.codec.compressor.sparsifier, best.codings}};
        return rill::train::compressed_bsp{best.topology, codec, usual.optimizer, usual.rate};
    });
}

}  // namespace demo
