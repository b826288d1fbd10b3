#pragma once

#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

namespace plan {

template <class Visit>
void for_each_topology(Visit&& visit) {
    visit(rill::topology::ring{});
    visit(rill::topology::recursive_doubling{});
    visit(rill::topology::halving_doubling{});
    visit(rill::topology::split_allgather{});
    visit(rill::topology::tree{});
    visit(rill::topology::star{});
}

}  // namespace plan
