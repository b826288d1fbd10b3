#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/collective/schedule_state.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI {

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

/// How many rounds ahead of its receives a rank may send.
template <Schedule Plan>
int lookahead(const Plan& plan) {
    if constexpr (LookaheadSchedule<Plan>) return plan.lookahead();
    return 1;
}

template <class Net, Schedule Plan, ScheduleState<Net> State>
void send_round(exchange<Net>& call, const Plan& plan, State& state, int round) {
    for (int i = 0; i < plan.sends(round); ++i) {
        const transfer to = plan.send(round, i);
        call.send(round, to.peer, state.outgoing(to.parts, plan.kind(round)));
    }
}

/// Expects the messages of a round, from message `first` on. Returns the first one that is not expected: with
/// `may_stop`, one whose destination others still read. If it were expected now, it would come to other memory and be
/// copied.
template <class Net, Schedule Plan, ScheduleState<Net> State>
int expect_round(exchange<Net>& call, const Plan& plan, State& state, int round, int first, bool may_stop) {
    for (int i = first; i < plan.receives(round); ++i) {
        const transfer from = plan.receive(round, i);
        std::span<const byte_span> targets;
        if constexpr (PlacingState<State, Net>)
            if (plan.kind(round) == action::copy) {
                if (state.has_free_place(from.parts))
                    targets = state.place_for(from.parts);
                else if (may_stop)
                    return i;
            }
        call.expect(from.peer, targets);
    }
    return plan.receives(round);
}

/// Goes on where `expect_round` has stopped, once the destination is free. Its readers receive messages of earlier
/// rounds, and none of them waits for the present round.
template <class Net, Schedule Plan, ScheduleState<Net> State>
int expect_rest(exchange<Net>& call, const Plan& plan, State& state, int round, int first) {
    if constexpr (PlacingState<State, Net>) state.await_place(plan.receive(round, first).parts);
    return expect_round(call, plan, state, round, first, true);
}

}  // namespace detail

/// Runs one rank's schedule: each round posts its sends, then receives, then folds or copies. If the plan has a
/// `lookahead()`, sends are posted and messages expected that many rounds ahead.
template <class Net, Schedule Plan, ScheduleState<Net> State>
void execute(exchange<Net>& call, const Plan& plan, State& state) {
    auto& arrivals = call.arrivals();
    const int ahead = detail::lookahead(plan);
    for (int round = 0, begun = 0; round < plan.rounds(); ++round) {
        call.enter(round, !State::overwrites_nothing);
        int let_in = 0;
        for (; begun < plan.rounds() && begun < round + ahead; ++begun) {
            detail::send_round(call, plan, state, begun);
            if constexpr (ExpectingTransport<Net>)
                let_in = detail::expect_round(call, plan, state, begun, 0, ahead == 1);
        }
        for (int i = 0; i < plan.receives(round); ++i) {
            const transfer from = plan.receive(round, i);
            if constexpr (ExpectingTransport<Net>)
                if (ahead == 1 && i == let_in) let_in = detail::expect_rest(call, plan, state, round, i);
            arrivals.push_back({from, call.receive(from.peer)});
        }
        if (arrivals.empty()) continue;
        if (plan.kind(round) == action::fold)
            detail::fold_by_parts(std::span(arrivals), [&](auto same_parts) { state.fold(same_parts); });
        else
            state.copy(arrivals);
        arrivals.clear();
    }
}

}}  // namespace rill::RILL_ABI
