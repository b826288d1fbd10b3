// The compile-time messages that say why something is not a group.
#pragma once

#include <rill/concept/detail/first_unmet.hpp>
#include <rill/concept/detail/require_topology.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>

#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Checks the parts of a group; the message names the first one that does not fit.
template <class Net, class Shape, class Exec>
consteval bool require_parts_of_group() {
    constexpr bool is_transport = Transport<Net>;
    static_assert(is_transport,
                  "rill::group: the first argument does not model rill::Transport; pass what in_process::run or "
                  "simulated::run gives to each rank, or an mpi::endpoint (see rill/concept/transport.hpp)");
    if constexpr (!is_transport) {
        return false;
    } else if constexpr (!require_topology<Shape>()) {
        return false;
    } else {
        static_assert(Executor<Exec>,
                      "rill::group: the argument behind the options does not model rill::Executor; pass serial{} or a "
                      "tbb_executor (see rill/concept/executor.hpp)");
        return Executor<Exec>;
    }
}

/// Stands for the topology of something that is not a group.
struct no_topology {};

/// The topology of a group.
template <class Group>
struct topology_of_group {
    using type = no_topology;
};
template <class Group>
    requires requires { typename Group::topology_type; }
struct topology_of_group<Group> {
    using type = typename Group::topology_type;
};
template <class Group>
using topology_of = typename topology_of_group<Group>::type;

/// Checks the first argument of every collective. A group whose own parts do not fit has reported that already.
template <class Group>
consteval bool require_group() {
    constexpr bool is_refused = requires { typename Group::refused_type; };
    constexpr bool is_group = is_refused || requires { typename Group::lane_type; };
    constexpr int unmet = first_unmet(is_group, !std::is_const_v<Group>);
    static_assert(unmet != 0,
                  "rill::collective: the first argument is not a group; make one of transport and topology, as in "
                  "`rill::group workers{net, rill::topology::ring{}};`, and pass that");
    static_assert(unmet != 1,
                  "rill::collective: the group is const, but operations use its memory; pass it without const");
    return unmet == -1 && !is_refused;
}

}}}  // namespace rill::RILL_ABI::detail
