#pragma once

#include <rill/collective/detail/require_group.hpp>
#include <rill/collective/request.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/receipt.hpp>

#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
template <class Net>
consteval bool require_activities() {
    static_assert(
        ConcurrentTransport<Net>,
        "rill::start: the transport does not model ConcurrentTransport, so no operation can go on without its "
        "caller; give the transport spawn, event, queue, this_activity and activities_run_alone, or call the blocking "
        "form");
    return ConcurrentTransport<Net>;
}
template <class Shape>
consteval bool require_lanes() {
    constexpr bool has_lanes = !DetouringTopology<Shape>;
    static_assert(has_lanes,
                  "rill::start: with this topology (backup_tree) a rank on the way of others must be in the same "
                  "operation, so operations run one at a time; call the blocking form, or use topology::tree");
    return has_lanes;
}
}  // namespace detail

/// Starts the group's next operation and returns at once.
///
/// `body(lane)` runs in an activity of its own: it calls one collective on `lane` as it would on the group, may compute
/// before and after it, and returns its receipt:
///
///     request r = rill::start(workers, [&](auto& lane) { return rill::all_reduce(lane, gradient, gradient); });
///
/// All ranks start their operations, and make their blocking calls, in the same order. Operations may complete in any
/// order, several at once.
///
/// If the transport's activities run alone (`activities_run_alone`), the operation progresses without its caller. If
/// they share the caller's thread, as over MPI below MPI_THREAD_MULTIPLE, its first messages leave at the start.
/// Afterwards it progresses whenever its rank waits for anything or tests a request: `test()` between two pieces of
/// computation lets all operations progress.
///
/// Cost: an activity of the transport and scratch for each operation in flight, kept for later ones. A start allocates
/// nothing when as many operations, and as large ones, have been in flight before. A start, like a blocking call, waits
/// while an operation is under way that began 32 operations before it.
///
/// Errors: `get` throws what `body` throws. If `body` throws without having called a collective, this rank fails in
/// that operation. After the failure of one operation all that are in flight fail with the same culprit.
template <class Group, class Body>
request start(Group& group, Body&& body) {
    if constexpr (!detail::require_group<Group>()) {
        return {};
    } else if constexpr (detail::require_activities<typename Group::transport_type>() &&
                         detail::require_lanes<typename Group::topology_type>()) {
        static_assert(detail::callable_object<std::decay_t<Body>, receipt, typename Group::lane_type&>,
                      "rill::start: the body must take a lane of the group by reference and return a receipt");
        return group.start(std::forward<Body>(body));
    } else {
        return {};
    }
}

}}  // namespace rill::RILL_ABI
