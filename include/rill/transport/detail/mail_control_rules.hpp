// How a post office handles the notes of the control channel.
#pragma once

#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_post_office.hpp>
#include <rill/transport/detail/same_failure.hpp>

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
        case note::verdict: return control_.learn(packed_notice::unpack({payload, head.size}));
        case note::question:
            control_.remember({.peer = source, .context = head.context, .number = head.id});
            return answer_questions(head.context);
        case note::answer: {
            call_signature call;
            std::memcpy(&call, payload, sizeof call);
            return control_.learn(source, head.context, call);
        }
        default:
            control_.rounds_heard |= std::uint32_t{1} << (head.id / 2);
            control_.any_failed |= head.id % 2 != 0;
            go_on_leaving();
    }
}

/// Whether `source` may send this rank such a note.
template <class Port>
bool post_office<Port>::may_say(rank_t source, const envelope& head) const {
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

/// Decides on rank 0 which reports were the first; true when there were any. Called only when no note is left to read:
/// if rank 0 has not read notes for long, another rank may have decided, and its verdict must be read first.
template <class Port>
bool post_office<Port>::judge() {
    if (rank() != 0 || control_.reports.empty()) return false;
    while (!control_.reports.empty()) decide(control_.reports.front().notice.context);
    return true;
}

/// This rank has ended.
template <class Port>
void post_office<Port>::leave(bool failed) {
    control_.has_left = true;
    control_.any_failed |= failed;
    go_on_leaving();
}
/// Whether the rank that tells this one in a round has done so, or has gone.
template <class Port>
bool post_office<Port>::is_heard(int round) const {
    return (control_.rounds_heard >> round & 1) != 0 || peers_[static_cast<std::size_t>(below(round))].has_gone;
}
/// After as many rounds as the number of ranks has bits, each rank knows that all have ended.
template <class Port>
void post_office<Port>::go_on_leaving() {
    for (int& told = control_.rounds_told;
         control_.has_left && told < leaving_rounds() && (told == 0 || is_heard(told - 1)); ++told)
        tell(below(told, -1),
             {.id = 2U * static_cast<unsigned>(told) + (control_.any_failed ? 1U : 0U), .kind = note::leave});
}
template <class Port>
bool post_office<Port>::have_all_left() const {
    if (!control_.has_left) return false;
    for (int round = 0; round < leaving_rounds(); ++round)
        if (!is_heard(round)) return false;
    return true;
}
/// Lets the port notice it when a rank goes that this one waits for.
template <class Port>
void post_office<Port>::watch_leaving() {
    for (int round = 0; round < leaving_rounds(); ++round)
        if (!is_heard(round)) port_.watch(below(round));
}

/// Ends all contexts when a peer has gone; true when one has. Called only when no note is left to read, since a verdict
/// of before comes first. Others hear of it also where another failure has ended this rank's contexts: the peer may
/// have been the one that told of that, and may not have told all. The loss is known here even where telling it throws.
template <class Port>
bool post_office<Port>::mourn() {
    const rank_t gone = port_.take_loss();
    if (gone == no_rank) return false;
    const abort_notice notice{.context = every_context,
                              .culprit = gone,
                              .reason = "rank " + std::to_string(gone) + " has gone without a farewell"};
    const abort_notice* const first = control_.first_before(notice);
    const bool is_news = first == nullptr || !rill::detail::same_failure(*first, notice);
    control_.learn(notice);
    state_of(gone).has_gone = control_.any_failed = true;
    if (is_news) tell_others({.kind = note::verdict}, packed_notice(notice).view());
    go_on_leaving();
    return true;
}

/// Learns that a peer has left; true when one has. Called only when no note is left to read, and after the transfers:
/// what the peer has said before is here.
template <class Port>
bool post_office<Port>::hear_goodbye() {
    const rank_t left = port_.take_goodbye();
    return left != no_rank && (state_of(left).has_left = true);
}
template <class Port>
void post_office<Port>::require_any(std::span<const rank_t> peers, channel on) const {
    if (peers.empty() || !std::all_of(peers.begin(), peers.end(), [this](rank_t peer) { return has_left(peer); }))
        return;
    throw_error({.context = on.context,
                 .culprit = peers.front(),
                 .reason = "rank " + std::to_string(peers.front()) + " has left, and rank " + std::to_string(rank()) +
                           " waits for it"});
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
