#pragma once

#include <rill/concept/completion.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The first base of `rounds`, so that its messages come before all others.
template <class Tree, class Enough, class Age, class Start>
struct round_requirements {
    static_assert(TreeTopology<Tree>,
                  "rill::rounds: the tree does not model TreeTopology; use topology::star, topology::tree or "
                  "topology::regular_tree (see rill/concept/tree_topology.hpp)");
    static_assert(
        Completion<Enough>,
        "rill::rounds: the policy after the tree does not model Completion, which says when a gather has enough; use "
        "straggler::wait_all, fastest, tolerate or until (see rill/concept/completion.hpp)");
    static_assert(Staleness<Age>,
                  "rill::rounds: the policy after the completion does not model Staleness, which says how old a "
                  "contribution may be; "
                  "use straggler::fresh, bounded or unbounded (see rill/concept/staleness.hpp)");
    static_assert(
        Trigger<Start>,
        "rill::rounds: the policy after the staleness does not model Trigger, which says who starts a round; use "
        "straggler::solo or all_ready (see rill/concept/trigger.hpp)");
};

}}}  // namespace rill::RILL_ABI::detail
