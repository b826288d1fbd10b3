#pragma once

#include <rill/concept/joint_aggregator.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A `JointAggregator` in the place of an aggregator. The states of dense all_reduces call its `combine` where they
/// would fold, with the values of those ranks alone that contribute.
template <class A>
struct joint_fold {
    static constexpr const char* name = A::name;
    static constexpr bool is_joint = true;
    static constexpr bool finish_is_trivial = true;

    A aggregator{};

    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        if constexpr (HasOptions<A>) aggregator.visit_options(visit);
    }
};

template <class Fold>
concept JointFold = requires { requires Fold::is_joint; };

/// The aggregator of a call in the form that states take.
template <class Fold>
constexpr const Fold& fold_for_state(const Fold& fold) {
    return fold;
}
template <MeantAsJoint A>
constexpr joint_fold<A> fold_for_state(const A& aggregator) {
    return {aggregator};
}

/// What is known of a joint aggregator's group only when the program runs.
template <class Fold, class Shape>
void require_joint_group([[maybe_unused]] const Fold& fold, [[maybe_unused]] const Shape& shape,
                         [[maybe_unused]] int ranks, [[maybe_unused]] rank_t rank) {
    if constexpr (MeantAsJoint<Fold>) {
        RILL_EXPECTS(folds_at_owners(shape),
                     "all_reduce: this topology does not bring all contributions to a coordinate together, as median "
                     "and trimmed_mean need; use topology::split_allgather");
        const int least = fold.least_ranks();
        if (ranks < least)
            refuse_option(text_of({"all_reduce with ", Fold::name, ": the number of ranks"}), spelled_value(ranks),
                          text_of({"at least ", least}), rank);
    }
}

}}}  // namespace rill::RILL_ABI::detail
