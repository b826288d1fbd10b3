#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/dense_state.hpp>
#include <rill/collective/executor.hpp>
#include <rill/collective/head.hpp>

#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI::detail {

template <class Net>
using empty_state = dense_state<Net, std::int32_t, aggregate::sum>;

/// Runs a schedule on nothing: no rank gets through before all have come.
template <class Net, Schedule Plan>
receipt synchronise(exchange<Net>& call, const Plan& plan, empty_state<Net>& state) {
    state.attach(call);
    state.begin(head_of(call), plan.parts(), {}, {}, tally{}, aggregate::sum{});
    execute(call, plan, state);
    receipt result{.rounds = plan.rounds()};
    state.total(0).describe(result);
    return result;
}

}  // namespace rill::inline RILL_ABI::detail
