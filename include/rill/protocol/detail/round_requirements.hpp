#pragma once

#include <rill/concept/completion.hpp>
#include <rill/concept/participation.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/protocol/detail/round_machine.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/wait_all.hpp>

#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The first base of `rounds`, so that its messages come before all others.
template <class Tree, class Enough, class Age, class Start, class Asked>
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
    static_assert(
        Participation<Asked>,
        "rill::rounds: the policy after the trigger does not model Participation, which says whom a round asks; "
        "use straggler::everyone or sampled (see rill/concept/participation.hpp)");
};

/// Takes the place of policies that are none, so that no more errors follow the message about them.
struct no_round_policies : round_policies<straggler::wait_all, straggler::fresh, straggler::solo> {
    template <class... Policies>
    no_round_policies(const Policies&...) {}  // NOLINT(google-explicit-constructor): made of what was passed
};

template <class Enough, class Age, class Start, class Asked>
using checked_round_policies =
    std::conditional_t<Completion<Enough> && Staleness<Age> && Trigger<Start> && Participation<Asked>,
                       round_policies<Enough, Age, Start, Asked>, no_round_policies>;

}}}  // namespace rill::RILL_ABI::detail
