#pragma once

#include <rill/aggregate/add.hpp>
#include <rill/core/config.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/linear_mean.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/topology/ring.hpp>
#include <rill/train/descent.hpp>
#include <rill/train/grouped_replica.hpp>
#include <rill/train/partial_replica.hpp>

#include <algorithm>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `probes`: how many ranks are drawn in each round, of which the first that is ready starts it. `staleness`: how many
/// rounds may move the model between the pull of a gradient's model and the round in which the gradient counts.
struct rna_options {
    int probes = 2;
    std::uint32_t staleness = 16;
};

/// What `rna` returns.
template <class Optimizer, class Rate>
using rna_plan = train::partial_replica<topology::ring, straggler::two_choices, straggler::bounded,
                                        straggler::linear_mean, train::descent<Optimizer, Rate>>;

/// RNA (Yang et al. 2020), on one ring: a plan for `train::asynchronous_trainer`. `rate` multiplies the mean gradient
/// of a round times the number of ranks that contribute to it. Deviation: a rank does not apply its gradients to its
/// own model before the round, which would count them twice.
template <class Optimizer, class Rate>
constexpr rna_plan<Optimizer, Rate> rna(const rna_options& chosen, const Optimizer& optimizer, const Rate& rate) {
    return {{}, {chosen.probes}, {chosen.staleness}, {}, {optimizer, rate}, {}};
}

/// RNA with its hierarchy: each group of `groups` makes such rounds, and the groups share a model to which each adds
/// what it has changed (`shared`: or, as in the paper, `aggregate::mean_of_latest`). A group of fewer ranks than
/// `probes` asks all of its ranks.
template <class Optimizer, class Rate, class Shared = aggregate::add>
train::grouped_replica<rna_plan<Optimizer, Rate>, Shared> grouped_rna(const train::grouping& groups,
                                                                      const rna_options& chosen,
                                                                      const Optimizer& optimizer, const Rate& rate,
                                                                      const Shared& shared = {}) {
    rna_options own = chosen;
    own.probes = std::clamp(chosen.probes, 1, std::max(1, static_cast<int>(groups.alike.members.size())));
    return {rna(own, optimizer, rate), groups, shared};
}

}}}  // namespace rill::RILL_ABI::systems
