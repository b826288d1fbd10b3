#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/collective/schedule_state.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>

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

/// Refers to a schedule of any type: one type for all, so that running them is compiled once for each transport.
class schedule_view {
  public:
    template <Schedule Plan>
    explicit schedule_view(const Plan& plan)
        : plan_(&plan), calls_(&calls_of<Plan>), rounds_(plan.rounds()), ahead_(detail::lookahead(plan)) {}

    int rounds() const { return rounds_; }
    int lookahead() const { return ahead_; }
    action kind(int round) const { return calls_->kind(plan_, round); }
    int sends(int round) const { return calls_->sends(plan_, round); }
    transfer send(int round, int i) const { return calls_->send(plan_, round, i); }
    int receives(int round) const { return calls_->receives(plan_, round); }
    transfer receive(int round, int i) const { return calls_->receive(plan_, round, i); }

  private:
    struct calls {
        action (*kind)(const void*, int);
        int (*sends)(const void*, int);
        transfer (*send)(const void*, int, int);
        int (*receives)(const void*, int);
        transfer (*receive)(const void*, int, int);
    };
    template <class Plan>
    static const Plan& as(const void* plan) {
        return *static_cast<const Plan*>(plan);
    }
    // Functions, where captureless lambdas would be two functions each for the compiler.
    template <class Plan>
    static action kind_of(const void* plan, int round) {
        return as<Plan>(plan).kind(round);
    }
    template <class Plan>
    static int sends_of(const void* plan, int round) {
        return as<Plan>(plan).sends(round);
    }
    template <class Plan>
    static transfer send_of(const void* plan, int round, int i) {
        return as<Plan>(plan).send(round, i);
    }
    template <class Plan>
    static int receives_of(const void* plan, int round) {
        return as<Plan>(plan).receives(round);
    }
    template <class Plan>
    static transfer receive_of(const void* plan, int round, int i) {
        return as<Plan>(plan).receive(round, i);
    }
    template <class Plan>
    static constexpr calls calls_of{&kind_of<Plan>, &sends_of<Plan>, &send_of<Plan>, &receives_of<Plan>,
                                    &receive_of<Plan>};

    const void* plan_;
    const calls* calls_;
    int rounds_;
    int ahead_;
};

/// Refers to a `ScheduleState` of any type, in the same way.
template <Transport Net>
class state_view {
  public:
    using arrivals = std::span<arrival<typename Net::message>>;

    template <ScheduleState<Net> State>
    explicit state_view(State& state)
        : state_(&state), calls_(&calls_of<State>), overwrites_nothing_(State::overwrites_nothing) {}

    /// Whether it is a `CuttingState`, which has the following members too.
    bool cuts() const { return calls_->awaits != nullptr; }
    bool may_send(part_range parts, action kind) const { return calls_->may_send(state_, parts, kind); }
    bool awaits(const transfer& from) const { return calls_->awaits(state_, from); }
    void close(part_range parts) const { calls_->close(state_, parts); }

    bool overwrites_nothing() const { return overwrites_nothing_; }
    byte_pieces outgoing(part_range parts, action kind) const { return calls_->outgoing(state_, parts, kind); }
    void fold(arrivals given) const { calls_->fold(state_, given); }
    void copy(arrivals given) const { calls_->copy(state_, given); }

    /// Whether it is a `PlacingState`, which has the following members too. Asked only if the transport expects.
    bool places() const { return calls_->place_for != nullptr; }
    std::span<const byte_span> place_for(part_range parts) const { return calls_->place_for(state_, parts); }
    bool has_free_place(part_range parts) const { return calls_->has_free_place(state_, parts); }
    void await_place(part_range parts) const { calls_->await_place(state_, parts); }

  private:
    struct calls {
        byte_pieces (*outgoing)(void*, part_range, action);
        void (*fold)(void*, arrivals);
        void (*copy)(void*, arrivals);
        bool (*may_send)(void*, part_range, action) = nullptr;
        bool (*awaits)(void*, const transfer&) = nullptr;
        void (*close)(void*, part_range) = nullptr;
        std::span<const byte_span> (*place_for)(void*, part_range) = nullptr;
        bool (*has_free_place)(void*, part_range) = nullptr;
        void (*await_place)(void*, part_range) = nullptr;
    };
    template <class State>
    static State& as(void* state) {
        return *static_cast<State*>(state);
    }
    template <class State>
    static byte_pieces outgoing_of(void* state, part_range parts, action kind) {
        return as<State>(state).outgoing(parts, kind);
    }
    template <class State>
    static void fold_in(void* state, arrivals given) {
        as<State>(state).fold(given);
    }
    template <class State>
    static void copy_in(void* state, arrivals given) {
        as<State>(state).copy(given);
    }
    template <class State>
    static constexpr calls made_for() {
        calls made{&outgoing_of<State>, &fold_in<State>, &copy_in<State>};
        if constexpr (CuttingState<State, Net>) {
            made.may_send = [](void* state, part_range parts, action kind) {
                return as<State>(state).may_send(parts, kind);
            };
            made.awaits = [](void* state, const transfer& from) { return as<State>(state).awaits(from); };
            made.close = [](void* state, part_range parts) { as<State>(state).close(parts); };
        }
        if constexpr (ExpectingTransport<Net> && PlacingState<State, Net>) {
            made.place_for = [](void* state, part_range parts) { return as<State>(state).place_for(parts); };
            made.has_free_place = [](void* state, part_range parts) { return as<State>(state).has_free_place(parts); };
            made.await_place = [](void* state, part_range parts) { as<State>(state).await_place(parts); };
        }
        return made;
    }
    template <class State>
    static constexpr calls calls_of = made_for<State>();

    void* state_;
    const calls* calls_;
    bool overwrites_nothing_;
};

// `by` carries the messages of an operation: its exchange, or what delivers them by detours.
template <class Net, class Carrier>
void send_round(Carrier& by, const schedule_view& plan, const state_view<Net>& state, int round) {
    for (int i = 0; i < plan.sends(round); ++i) {
        const transfer to = plan.send(round, i);
        const byte_pieces message = state.outgoing(to.parts, plan.kind(round));
        if (message.count() != 0) by.send(round, to.peer, message);
    }
}

/// Whether a round may be posted ahead of its turn.
template <class Net>
bool may_begin(const schedule_view& plan, const state_view<Net>& state, int round) {
    for (int i = 0; i < plan.sends(round); ++i)
        if (!state.may_send(plan.send(round, i).parts, plan.kind(round))) return false;
    return true;
}

/// Expects the messages of a round, from message `first` on. Returns the first one that is not expected: with
/// `may_stop`, one whose destination others still read. If it were expected now, it would come to other memory and be
/// copied.
template <class Net, class Carrier>
int expect_round(Carrier& by, const schedule_view& plan, const state_view<Net>& state, int round, int first,
                 bool may_stop) {
    for (int i = first; i < plan.receives(round); ++i) {
        const transfer from = plan.receive(round, i);
        std::span<const byte_span> targets;
        if (state.places() && plan.kind(round) == action::copy) {
            if (state.has_free_place(from.parts))
                targets = state.place_for(from.parts);
            else if (may_stop)
                return i;
        }
        by.expect(from.peer, targets);
    }
    return plan.receives(round);
}

template <class Net, class Carrier>
[[gnu::noinline]] void run_rounds(exchange<Net>& call, Carrier& by, const schedule_view& plan,
                                  const state_view<Net>& state) {
    auto& arrivals = call.arrivals();
    const int ahead = plan.lookahead();
    // How many messages come where the sender decides is not known beforehand.
    [[maybe_unused]] const bool expects = ahead == 1 || !state.cuts();
    for (int round = 0, begun = 0; round < plan.rounds(); ++round) {
        call.enter(round, !state.overwrites_nothing());
        int let_in = 0;
        for (; begun < plan.rounds() && begun < round + ahead; ++begun) {
            if (state.cuts() && begun > round && !may_begin(plan, state, begun)) break;
            send_round(by, plan, state, begun);
            if constexpr (ExpectingTransport<Net>)
                if (expects) let_in = expect_round(by, plan, state, begun, 0, ahead == 1);
        }
        for (int i = 0; i < plan.receives(round); ++i) {
            const transfer from = plan.receive(round, i);
            if constexpr (ExpectingTransport<Net>)
                if (ahead == 1 && i == let_in) {
                    // Readers of the destination receive messages of earlier rounds: none waits for the present round.
                    if (state.places()) state.await_place(from.parts);
                    let_in = expect_round(by, plan, state, round, i, true);
                }
            if (state.cuts() && !state.awaits(from)) continue;
            arrivals.add({from, by.receive(from.peer), Carrier::skipped});
            const bool folds = plan.kind(round) == action::fold;
            if (!(folds ? state.cuts() : state.overwrites_nothing())) continue;
            folds ? state.fold(arrivals.all()) : state.copy(arrivals.all());  // at once, while others travel
            arrivals.clear();
        }
        if (state.cuts() && plan.kind(round) == action::fold)
            for (int i = 0; i < plan.receives(round); ++i)
                if (const part_range parts = plan.receive(round, i).parts;
                    i == 0 || parts != plan.receive(round, i - 1).parts)
                    state.close(parts);
        if (arrivals.empty()) continue;
        if (plan.kind(round) == action::fold)
            fold_by_parts(arrivals.all(), [&](auto same_parts) { state.fold(same_parts); });
        else
            state.copy(arrivals.all());
        arrivals.clear();
    }
}

}  // namespace detail

/// Runs one rank's schedule: each round posts its sends, then receives, then folds or copies. If the plan has a
/// `lookahead()`, sends are posted and messages expected that many rounds ahead.
template <class Net, Schedule Plan, ScheduleState<Net> State>
void execute(exchange<Net>& call, const Plan& plan, State& state) {
    detail::run_rounds(call, call, detail::schedule_view(plan), detail::state_view<Net>(state));
}

}}  // namespace rill::RILL_ABI
