#pragma once

#include <rill/compress/random_mask.hpp>
#include <rill/core/config.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/train/decentralized.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `density`: the share of the entries that are mixed in a step, 1/c in the paper; `seed` draws them.
struct saps_psgd_options {
    double density = 0.01;
    std::uint64_t seed = 0;
};

/// What `saps_psgd` returns.
template <class Optimizer, class Rate, class Mix>
using saps_psgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::random_mask>;

/// SAPS-PSGD (Tang et al. 2020): a strategy for `train::trainer`. Each rank moves its model along its own gradient, and
/// averages some of its entries, which are the same on all ranks, with those of one other rank over a fast link.
/// Deviations: those of `topology::bandwidth_matching`; and all ranks compute the pairs, so that no coordinator is
/// needed, and none keeps the others going where a rank fails: for that see `rill::coordinated`.
template <class Optimizer, class Rate, class Mix = topology::bandwidth_matching>
saps_psgd_strategy<Optimizer, Rate, Mix> saps_psgd(const saps_psgd_options& chosen, const Mix& mixing,
                                                   const Optimizer& optimizer, const Rate& rate) {
    return {mixing, optimizer, rate, {.density = chosen.density, .seed = chosen.seed}};
}

}}}  // namespace rill::RILL_ABI::systems
