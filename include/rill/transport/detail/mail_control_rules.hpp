// How a post office handles the notes of the control channel.
#pragma once

#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/mail_post_office.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

template <class Port>
void post_office<Port>::handle_control(rank_t source, const envelope& head, const std::byte* payload) {
    switch (head.kind) {
        case note::report: return hear(source, packed_notice::unpack({payload, head.size}));
        case note::verdict: return hear_end(packed_notice::unpack({payload, head.size}), head, payload);
        case note::question:
            control_.remember({.peer = source, .context = head.context, .number = head.id});
            return answer_questions(head.context);
        case note::answer: {
            call_signature call;
            std::memcpy(&call, payload, sizeof call);
            return control_.learn(source, head.context, call);
        }
        case note::monitor:
            state_of(source).asks_for_end = true;
            state_of(source).monitors |= head.id == 0;
            if (control_.has_left) tell_own_end(source);
            return;
        case note::ended:
            if (head.size != 0) hear_failure(source, packed_notice::unpack({payload, head.size}));
            return tell_end(source);
        case note::loss: return hear_end(notice_of_loss(static_cast<rank_t>(head.id)), head, payload);
        default:
            control_.rounds_heard |= std::uint32_t{1} << (head.id / 2);
            control_.any_failed |= head.id % 2 != 0;
            go_on_leaving();
    }
}

/// Whether `source` may send this rank such a note.
template <class Port>
bool post_office<Port>::may_say(rank_t source, const envelope& head) const {
    if (head.kind == note::loss) return head.id < static_cast<unsigned>(size());
    return head.kind != note::leave ||
           (head.id / 2 < static_cast<unsigned>(leaving_rounds()) && source == below(static_cast<int>(head.id / 2)));
}

/// Stores a report of an abort. If the context has already ended here, answers with the notice that ended it: the rank
/// that sent this notice may have died before it told `source`.
template <class Port>
void post_office<Port>::hear(rank_t source, const abort_notice& report) {
    const abort_notice* const first = control_.first_before(report);
    if (first == nullptr)
        control_.reports.push_back({source, report});
    else
        tell(source, {.kind = note::verdict}, packed_notice(*first).view());
}

/// Stores what has ended contexts, before a wait throws it. Where it is the first that this rank hears, it goes on to
/// those that this rank tells of its end: who has decided or noticed it may not reach all others.
template <class Port>
void post_office<Port>::hear_end(const abort_notice& notice, const envelope& head, const std::byte* payload) {
    const bool is_known = control_.first_before(notice) != nullptr;
    control_.learn(notice);
    if (is_known || control_.first_before(notice) == nullptr) return;
    for (int round = 0; round < leaving_rounds(); ++round)
        tell(below(round, -1), {.id = head.id, .kind = head.kind}, {payload, head.size});
}

/// Decides on the judging rank which reports were the first; true when there were any. Called only when no note is left
/// to read: if this rank has not read notes for long, another one may have decided, and its verdict must be read first.
template <class Port>
bool post_office<Port>::judge() {
    if (control_.reports.empty() || judging() != rank()) return false;
    while (!control_.reports.empty()) decide(control_.reports.front().notice.context);
    return true;
}

/// This rank has ended. The rounds of leaving need all of the ranks: where some may come or be lost, each tells each.
template <class Port>
void post_office<Port>::leave() {
    control_.has_left = true;
    control_.any_failed |= control_.failure.has_value();
    for (rank_t peer = 0; peer < size(); ++peer)
        if (state_of(peer).asks_for_end) tell_own_end(peer);
    if (takes_newcomers() && !control_.monitors) tell_others({.id = 1, .kind = note::monitor});
    go_on_leaving();
}
template <class Port>
void post_office<Port>::tell_own_end(rank_t peer) {
    if (!control_.failure) return tell(peer, {.kind = note::ended});
    tell(peer, {.kind = note::ended}, packed_notice(*control_.failure).view());
}
/// Whether the rank that tells this one in a round has done so, or is not there any more.
template <class Port>
bool post_office<Port>::is_heard(int round) const {
    return (control_.rounds_heard >> round & 1) != 0 || is_away(below(round));
}
/// After as many rounds as the number of ranks has bits, each rank knows that all have ended.
template <class Port>
void post_office<Port>::go_on_leaving() {
    for (int& told = control_.rounds_told;
         control_.has_left && told < leaving_rounds() && (told == 0 || is_heard(told - 1)); ++told)
        tell(below(told, -1),
             {.id = 2U * static_cast<unsigned>(told) + (control_.any_failed ? 1U : 0U), .kind = note::leave});
}
/// Those that monitor go on after a failure, and are not waited for.
template <class Port>
bool post_office<Port>::have_all_left(bool after_failure) const {
    if (!control_.has_left) return false;
    if (takes_newcomers()) return nobody_is_left(after_failure);
    if (control_.monitors && any_is_away() && nobody_is_left(after_failure)) return true;
    for (int round = 0; round < leaving_rounds(); ++round)
        if (!is_heard(round) && !(after_failure && at(below(round)).monitors)) return false;
    return true;
}
/// Lets the port notice it when a rank goes that this one waits for.
template <class Port>
void post_office<Port>::watch_leaving() {
    for (int round = 0; round < leaving_rounds(); ++round)
        if (!is_heard(round)) port_.watch(below(round));
}

template <class Port>
void post_office<Port>::decide(std::uint64_t context) {
    const abort_notice first = control_.foremost_report(context);
    control_.learn(first);
    tell_others({.kind = note::verdict}, packed_notice(first).view());
}

/// Tells those who have asked what has been entered by now: the call in question, or a later one meanwhile, or that
/// neither will ever be.
template <class Port>
void post_office<Port>::answer_questions(std::uint64_t context) {
    const auto answered = [&](const control::question& asked) {
        if (asked.context != context) return false;
        auto entered = control_.calls.entered_or_later(context, asked.number);
        if (!entered && control_.has_departed) entered = {.number = asked.number, .kind = operation::departure};
        if (!entered) return false;
        tell(asked.peer, {.context = context, .kind = note::answer},
             {reinterpret_cast<const std::byte*>(&*entered), sizeof(call_signature)});
        return entered->number == asked.number;
    };
    std::erase_if(control_.questions, answered);
}

/// The body of this rank has returned: it enters nothing more.
template <class Port>
void post_office<Port>::depart() {
    control_.has_departed = true;
    const std::vector<control::question> asked = control_.questions;
    for (const control::question& each : asked) answer_questions(each.context);
}

}}}  // namespace rill::RILL_ABI::mail
