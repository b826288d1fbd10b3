#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <span>

namespace rill::inline RILL_ABI {

namespace detail {

/// Calls `fold(arrivals)` once for each run of arrivals that bring the same parts: the operands of one k-way fold.
template <class Message, class Fold>
void fold_by_parts(std::span<arrival<Message>> arrivals, Fold&& fold) {
    for (std::size_t first = 0; first < arrivals.size();) {
        std::size_t last = first + 1;
        while (last < arrivals.size() && arrivals[last].from.parts == arrivals[first].from.parts) ++last;
        fold(arrivals.subspan(first, last - first));
        first = last;
    }
}

}  // namespace detail

/// Runs one rank's schedule: in each round posts what it sends, then receives, then folds or copies. `State` holds the
/// data: `outgoing(parts, action)` gives the pieces of a message, whose memory stays valid until the exchange finishes;
/// `fold(arrivals)` takes arrivals that all bring the same parts, `copy(arrivals)` what a round brought, both in
/// ascending order of the peers. It may keep messages.
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
            detail::fold_by_parts(std::span(arrivals), [&](auto same_parts) { state.fold(same_parts); });
        else
            state.copy(arrivals);
        arrivals.clear();
    }
}

}  // namespace rill::inline RILL_ABI
