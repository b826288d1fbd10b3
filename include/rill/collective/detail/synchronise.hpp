#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/dense_state.hpp>
#include <rill/collective/detail/frame_header.hpp>
#include <rill/collective/run_schedule.hpp>

#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

template <class Net>
using empty_state = dense_state<Net, std::int32_t, aggregate::sum>;

/// Runs a schedule without data: no rank gets through before all have come.
template <class Net, Schedule Plan>
receipt synchronise(exchange<Net>& call, const Plan& plan, empty_state<Net>& state) {
    state.attach(call);
    state.begin(frame_header_of(call), plan.parts(), {}, {}, contribution_sum{}, aggregate::sum{});
    execute(call, plan, state);
    receipt result{.rounds = plan.rounds()};
    state.total(0).describe(result);
    return result;
}

}}}  // namespace rill::RILL_ABI::detail
