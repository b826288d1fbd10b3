#pragma once

#include <rill/compress/difference.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/config.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/decentralized.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `density`: the share of the entries of the difference that a rank sends, in (0, 1]: 1/c in the paper.
struct dcd_psgd_options {
    double density = 0.25;
};

/// What `dcd_psgd` returns.
template <class Optimizer, class Rate, class Mix>
using dcd_psgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::difference<compress::top_k>>;

/// DCD-PSGD (Tang et al. 2018): a strategy for `train::trainer`. A rank's model is what its neighbours in a ring know
/// of it; each sends the largest entries of the difference between that and the model that it would have. Deviation:
/// the largest entries instead of random ones scaled by c, with which it diverges for c = 4.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr dcd_psgd_strategy<Optimizer, Rate, Mix> dcd_psgd(const dcd_psgd_options& chosen, const Optimizer& optimizer,
                                                           const Rate& rate, const Mix& mixing = {}) {
    return {mixing, optimizer, rate, {{.density = chosen.density}, {}}};
}

}}}  // namespace rill::RILL_ABI::systems
