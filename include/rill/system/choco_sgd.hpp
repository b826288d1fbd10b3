#pragma once

#include <rill/compress/difference.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/config.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/train/decentralized.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `density`: the share of the entries of the difference that a rank sends, in (0, 1]. `step`: how far a model moves
/// towards its neighbours', in (0, 1]: the fewer entries, the shorter.
struct choco_sgd_options {
    double density = 0.01;
    double step = 0.05;
};

/// What `choco_sgd` returns.
template <class Optimizer, class Rate, class Mix>
using choco_sgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::difference<compress::top_k>>;

/// CHOCO-SGD (Koloskova et al. 2019): a strategy for `train::trainer`. Each rank moves its model along its own
/// gradient, sends its neighbours in a ring the largest entries of what they do not know of it, and moves it towards
/// what it knows of theirs.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr choco_sgd_strategy<Optimizer, Rate, Mix> choco_sgd(const choco_sgd_options& chosen,
                                                             const Optimizer& optimizer, const Rate& rate,
                                                             const Mix& mixing = {}) {
    return {mixing, optimizer, rate, {{.density = chosen.density}, chosen.step}};
}

}}}  // namespace rill::RILL_ABI::systems
