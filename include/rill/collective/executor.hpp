#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/types.hpp>

namespace rill::inline RILL_ABI {

/// Runs one rank's schedule: in each round posts what it sends, then receives, then folds or copies. `State` holds the
/// data: `outgoing(parts, action)` gives the pieces of a message, whose memory stays valid until the exchange finishes;
/// `fold(arrivals)` and `copy(arrivals)` take what a round brought, in ascending order of the peers. It may keep
/// messages.
template <class Net, Schedule Plan, class State>
void execute(exchange<Net>& call, const Plan& plan, State& state) {
    auto& arrivals = call.arrivals();
    for (int round = 0; round < plan.rounds(); ++round) {
        call.next_round();
        const action kind = plan.kind(round);
        for (int i = 0; i < plan.sends(round); ++i) {
            const transfer to = plan.send(round, i);
            call.send(to.peer, state.outgoing(to.parts, kind));
        }
        for (int i = 0; i < plan.receives(round); ++i) {
            const transfer from = plan.receive(round, i);
            arrivals.push_back({from, call.receive(from.peer)});
        }
        if (arrivals.empty()) continue;
        if (kind == action::fold)
            state.fold(arrivals);
        else
            state.copy(arrivals);
        arrivals.clear();
    }
}

}  // namespace rill::inline RILL_ABI
