#pragma once

#include <rill/core/config.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/sampled.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `fraction`: the share of the workers that the root asks in a round.
struct fed_avg_options {
    double fraction = 0.5;
};

/// FedAvg (McMahan et al. 2017): the rounds of a root, which has the model, and of workers. Returns `rounds` over a
/// star:
///
///     auto fed = systems::fed_avg(workers);
///     while (fed.next(model)) { ... fed.reduce(change, update, codec, aggregate::mean{}, {.weight = points}); }
///
/// Each worker that is asked descends from the model by itself and uploads by how much it has moved it. With
/// `compress::random_mask`, or `top_k` in `error_feedback`, as `codec` it is S-FedAvg. Collective; `workers` must
/// outlive what it returns.
template <class Group>
auto fed_avg(Group& workers, const fed_avg_options& chosen = {}) {
    return rounds{workers,
                  topology::star{},
                  straggler::wait_all{},
                  straggler::fresh{},
                  straggler::solo{},
                  straggler::sampled{.fraction = chosen.fraction}};
}

}}}  // namespace rill::RILL_ABI::systems
