#pragma once

#include <rill/collective/group.hpp>
#include <rill/concept/backlog.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/protocol/partial_all_reduce.hpp>

#include <concepts>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// The group of a replica, which must outlive it.
template <class Group>
struct replica_group {
    Group workers;
};

template <class Net, class Policy, std::floating_point T>
using partial_replica_of = partial_all_reduce<group<Net, decltype(Policy::topology)>, T, decltype(Policy::trigger),
                                              decltype(Policy::staleness), decltype(Policy::backlog),
                                              decltype(Policy::update), decltype(Policy::codec)>;

}  // namespace detail

/// A `partial_replica` bound to one rank: a `partial_all_reduce` and its group.
template <class Net, class Policy, std::floating_point T>
class bound_partial_replica : detail::replica_group<group<Net, decltype(Policy::topology)>>,
                              public detail::partial_replica_of<Net, Policy, T> {
    using holder = detail::replica_group<group<Net, decltype(Policy::topology)>>;

  public:
    bound_partial_replica(Net& net, const Policy& policy, std::span<const T> first, const group_options& options)
        : holder{group<Net, decltype(Policy::topology)>(net, policy.topology, options)},
          detail::partial_replica_of<Net, Policy, T>(holder::workers, policy.trigger, policy.staleness, policy.backlog,
                                                     policy.update, first, policy.codec) {}
};

/// Training by rounds that some ranks start and all join (`partial_all_reduce`).
///
/// Models `ReplicaPlan`. All ranks have the same model after each round.
template <class Shape, Trigger Start, Staleness Age, Backlog Sum, class Move, class Codec = no_codec>
struct partial_replica {
    static constexpr const char* name = "partial_replica";

    Shape topology{};
    Start trigger{};
    Age staleness{};
    Sum backlog{};
    Move update{};
    Codec codec{};

    template <std::floating_point T = float, class Net>
    bound_partial_replica<Net, partial_replica, T> bind(Net& net, std::span<const T> first,
                                                        const group_options& options = {}) const {
        return {net, *this, first, options};
    }
};

template <class S, class R, class A, class B, class U>
partial_replica(S, R, A, B, U) -> partial_replica<S, R, A, B, U>;
template <class S, class R, class A, class B, class U, class C>
partial_replica(S, R, A, B, U, C) -> partial_replica<S, R, A, B, U, C>;

}}}  // namespace rill::RILL_ABI::train
