#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/core/config.hpp>
#include <rill/protocol/local_steps.hpp>

#include <concepts>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// The replica that local steps are pushed to, which must outlive them.
template <class Net, class Policy, std::floating_point T>
struct outer_replica {
    using type = decltype(std::declval<const Policy&>().replica.template bind<T>(
        std::declval<Net&>(), std::span<const T>(), group_options{}));
    type outer;
};

template <class Net, class Policy, std::floating_point T>
using local_replica_of = local_steps<typename outer_replica<Net, Policy, T>::type, decltype(Policy::update)>;

}  // namespace detail

/// A `local_replica` bound to one rank: `local_steps` and the replica that they are pushed to, which is `replica()`.
template <class Net, class Policy, std::floating_point T>
class bound_local_replica : detail::outer_replica<Net, Policy, T>, public detail::local_replica_of<Net, Policy, T> {
    using holder = detail::outer_replica<Net, Policy, T>;

  public:
    bound_local_replica(Net& net, const Policy& policy, std::span<const T> first, const group_options& options)
        : holder{policy.replica.template bind<T>(net, first, options)},
          detail::local_replica_of<Net, Policy, T>(holder::outer, policy.steps, policy.update, first) {}
};

/// Training by steps that each rank makes by itself, and pushes to the replica of another plan (`local_steps`).
///
/// Models `ReplicaPlan`. `update`: how a gradient moves a rank's own model.
template <class Outer, class Move>
struct local_replica {
    static constexpr const char* name = "local_replica";

    Outer replica{};
    local_step_options steps{};
    Move update{};

    template <std::floating_point T = float, class Net>
    bound_local_replica<Net, local_replica, T> bind(Net& net, std::span<const T> first,
                                                    const group_options& options = {}) const {
        return {net, *this, first, options};
    }
};

template <class O, class M>
local_replica(O, local_step_options, M) -> local_replica<O, M>;

}}}  // namespace rill::RILL_ABI::train
