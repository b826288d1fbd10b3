#pragma once

#include <rill/protocol/rounds.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/star.hpp>

namespace rill { inline namespace RILL_ABI { namespace systems {

/// A master that waits for every worker: the uncoded baseline of gradient coding.
template <class Group>
using master_worker = rounds<Group, topology::star, straggler::wait_all>;

/// A master that goes on with the workers that come first and drops later ones: SGD that ignores the slowest.
template <class Group>
using fastest_workers = rounds<Group, topology::star, straggler::fastest>;

/// Makes rounds that wait for every worker. Rank 0 is the master.
template <class Group>
master_worker<Group> uncoded_master_worker(Group& workers) {
    return master_worker<Group>(workers, {});
}

/// Makes rounds that ignore the `ignored` slowest workers. Rank 0 is the master.
template <class Group>
fastest_workers<Group> sgd_ignoring_slowest(Group& workers, int ignored) {
    return fastest_workers<Group>(workers, {}, {.count = workers.size() - 1 - ignored});
}

}}}  // namespace rill::RILL_ABI::systems
