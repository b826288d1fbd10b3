#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/lookout.hpp>
#include <rill/transport/detail/mail_control.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_inbox.hpp>
#include <rill/transport/detail/mail_outbox.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mail_receiving.hpp>
#include <rill/transport/detail/mail_storage.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Handles one rank's messages and notes, sent and received. It never waits. It lives as long as its port, so
/// that the next endpoint on the same processes finishes the transfers that an endpoint leaves behind.
///
/// What stands here are the notes of the control channel: what ends contexts, who has entered which call, and what
/// becomes of the peers.
template <class Port>
class post_office final : public receiving_desk<Port> {
    using base = receiving_desk<Port>;

  public:
    using base::is_away, base::rank, base::size, base::tell, base::tell_others;
    using typename base::node;

    explicit post_office(const typename Port::place& of) : base(of) {}

    /// Advances all transfers and handles at most one note; false when nothing has happened. A port that `wakes` is
    /// asked whether anything has come only where it `looks`.
    bool progress(bool looks = true) {
        if constexpr (Port::wakes)
            if (looks) port_.look();
        bool moved = parcels_.any_flying() && parcels_.progress();
        if (unasked_ != 0) moved |= send_on();
        if (transfers_.any()) moved |= transfers_.progress([this](node& n, bool withdrawn) { ended(n, withdrawn); });
        constexpr std::size_t lead = parcel<typename Port::request>::lead;
        std::byte* const landed = landing_.data() + lead;
        if (hear_news()) return true;
        const received_note note = port_.receive_note(landed, landing_.size() - lead);
        if (note.source == no_rank) return mourn() || hear_goodbye() || judge() || moved;
        envelope head;
        if (note.size >= sizeof head) std::memcpy(&head, landed, sizeof head);
        if (note.size != sizeof head + head.size) refuse(note.source, head);
        handle(note.source, head, landing_.data() + storage::alignment);
        return true;
    }

    /// Throws `peer_failure` where none of the peers will do any more what this rank waits for on a channel: all have
    /// gone, or have left and no deadline would end the wait.
    void require_any(std::span<const rank_t> peers, channel on, deadline until) const {
        const auto is_gone = [this](rank_t peer) { return at(peer).has_gone; };
        const auto is_over = [this](rank_t peer) { return is_away(peer); };
        if (peers.empty() || !std::all_of(peers.begin(), peers.end(), is_over) || watch_.is_watched(on)) return;
        const rank_t first = peers.front();
        if (std::all_of(peers.begin(), peers.end(), is_gone)) {
            if (watch_.is_open(on.context)) return;
            abort_notice notice = at(first).failure.value_or(notice_of_loss(first));
            notice.context = on.context;
            throw_error(notice);
        }
        if (!until.is_never()) return;
        throw_error({.context = on.context,
                     .culprit = first,
                     .reason = text_of({"rank ", first, " has left, and rank ", rank(), " waits for it"})});
    }
    /// The same of a wait for messages, in a context that is monitored.
    void require_coming(std::span<const rank_t> peers, channel on) const {
        require_heard(peers, on);
        if (watch_.waits_in_vain(peers, on)) throw_error(rill::detail::notice_of_ends(rank(), peers, on));
    }
    /// Throws `peer_failure` where a wait in a context that is monitored is for peers that are silent.
    void require_heard(std::span<const rank_t> peers, channel on) const {
        if (watch_.waits_for_silent(peers, on)) throw_error(rill::detail::notice_of_silence(rank(), peers, on));
    }

    // See `MonitoredTransport`.

    void monitor(channel on) {
        if (!control_.monitors) {
            control_.begin_to_monitor();
            port_.monitor();
            tell_others({.kind = note::monitor});
        }
        watch_.watch(on);
        for (rank_t peer = 0; peer < size(); ++peer)
            if (watch_.has_ended(peer)) say(peer, on, peer_change::ended);
    }
    /// The conversation goes on: what arrives is dropped.
    void fence(rank_t peer, std::uint64_t incarnation) {
        if (incarnation == 0 || incarnation != life_of(peer)) return;
        watch_.fence(peer);
        inbox_.for_each_of(peer, [&](node& n) { drop(n); });
    }

    // What ends contexts, and the calls of others.

    /// The rank that says which notice was the first: the lowest that is there.
    rank_t judging() const {
        rank_t lowest = 0;
        while (lowest != rank() && is_away(lowest)) ++lowest;
        return lowest;
    }
    /// Declares one of the reports of a context, of which there must be one, as what ended it, and tells all ranks.
    void decide(std::uint64_t context) {
        const abort_notice first = control_.foremost_report(context);
        control_.learn(first);
        tell_others({.kind = note::verdict}, packed_notice(first).view());
    }
    /// Tells those who have asked what has been entered by now: the call in question, or a later one meanwhile, or that
    /// neither will ever be.
    void answer_questions(std::uint64_t context) {
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

    // The end of a run.

    /// The body of this rank has returned: it enters nothing more.
    void depart() {
        control_.has_departed = true;
        const std::vector<control::question> asked = control_.questions;
        for (const control::question& each : asked) answer_questions(each.context);
    }
    /// This rank has ended. The rounds of leaving need all of the ranks: where some may come or be lost, each tells
    /// each.
    void leave() {
        control_.has_left = true;
        control_.any_failed |= control_.failure.has_value();
        for (rank_t peer = 0; peer < size(); ++peer)
            if (state_of(peer).asks_for_end) tell_own_end(peer);
        if (takes_newcomers() && !control_.monitors) tell_others({.id = 1, .kind = note::monitor});
        go_on_leaving();
    }
    /// Those that monitor go on after a failure, and are not waited for.
    bool have_all_left(bool after_failure) const {
        if (!control_.has_left) return false;
        if (takes_newcomers()) return nobody_is_left(after_failure);
        if (control_.monitors && any_is_away() && nobody_is_left(after_failure)) return true;
        for (int round = 0; round < leaving_rounds(); ++round)
            if (!is_heard(round) && !(after_failure && at(below(round)).monitors)) return false;
        return true;
    }
    /// Whether a failure of this rank ends nobody else: the others monitor, or are away.
    bool do_all_others_go_on() const {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank() && life_of(peer) != 0 && !is_away(peer) && !at(peer).monitors) return false;
        return true;
    }
    bool takes_newcomers() const {
        if constexpr (MonitoringPort<Port>) return port_.takes_newcomers();
        return false;
    }
    /// Lets the port notice it when a rank goes that this one waits for.
    void watch_leaving() {
        for (int round = 0; round < leaving_rounds(); ++round)
            if (!is_heard(round)) port_.watch(below(round));
    }

  private:
    using base::at, base::chosen_, base::control_, base::inbox_, base::incarnation_, base::landing_, base::outbox_;
    using base::deliver, base::discard, base::drop, base::ended, base::forsake, base::give_up, base::life_of, base::pay;
    using base::parcels_, base::peers_, base::port_, base::transfers_, base::unasked_, base::watch_;
    using base::send_on, base::state_of, base::take_end, base::take_more;
    using typename base::outgoing, typename base::peer_state;

    void handle(rank_t source, const envelope& head, const std::byte* payload) override {
        if (head.incarnation != incarnation_ && head.kind != note::ask) return;
        if (!is_whole(head, payload, transfers_.small()) || !may_say(source, head)) refuse(source, head);
        peer_state& peer = state_of(source);
        switch (head.kind) {
            case note::lent:
            case note::handed:
            case note::announce_lent:
            case note::announce_handed: return deliver(source, head, payload);
            case note::begin:
                if (announcement::size_of_pieces(payload, head.pieces) > chosen_.mailbox_bytes - peer.came_unasked)
                    refuse(source, head);
                return deliver(source, head, payload);
            case note::go_on:
                if (!take_more(source, head.id, {payload, head.size})) refuse(source, head);
                return;
            case note::ask:
                if (!transfers_.answer(source, head.id, head.tag, head.context)) refuse(source, head);
                return;
            case note::withdraw:
                take_end(source, head.id);
                return inbox_.for_each_of(source, [&](node& n) {
                    if (n.id == head.id && n.is == node_state::announced) discard(n);
                });
            case note::drop:
                if (outgoing* const sent = outbox_.find(head.id); sent != nullptr) give_up(*sent);
                return;
            case note::credit:
                if (head.id > peer.outstanding.handed || head.context > peer.outstanding.unasked) refuse(source, head);
                peer.outstanding.handed -= head.id;
                peer.outstanding.unasked -= head.context;
                peer.want_sent = false;
                return;
            case note::want: peer.wanted = true; return pay(source);
            default: return handle_control(source, head, payload);
        }
    }
    [[noreturn]] void refuse(rank_t source, const envelope& head) const {
        throw protocol_error(abort_notice{
            .context = every_context,
            .kind = failure::protocol,
            .culprit = source,
            .reason = "rank " + std::to_string(source) + " sent rank " + std::to_string(rank()) + " a note of kind " +
                      std::to_string(static_cast<int>(head.kind)) + ", with " + std::to_string(head.size) +
                      " bytes, which this build does not know: all ranks must run the same program"});
    }
    void handle_control(rank_t source, const envelope& head, const std::byte* payload) {
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
    bool may_say(rank_t source, const envelope& head) const {
        if (head.kind == note::loss) return head.id < static_cast<unsigned>(size());
        return head.kind != note::leave || (head.id / 2 < static_cast<unsigned>(leaving_rounds()) &&
                                            source == below(static_cast<int>(head.id / 2)));
    }

    // What ends contexts.

    /// Stores a report of an abort. If the context has already ended here, answers with the notice that ended it: the
    /// rank that sent this notice may have died before it told `source`.
    void hear(rank_t source, const abort_notice& report) {
        const abort_notice* const first = control_.first_before(report);
        if (first == nullptr)
            control_.reports.push_back({source, report});
        else
            tell(source, {.kind = note::verdict}, packed_notice(*first).view());
    }
    /// Stores what has ended contexts, before a wait throws it. Where it is the first that this rank hears, it goes on
    /// to those that this rank tells of its end: who has decided or noticed it may not reach all others.
    void hear_end(const abort_notice& notice, const envelope& head, const std::byte* payload) {
        const bool is_known = control_.first_before(notice) != nullptr;
        control_.learn(notice);
        if (is_known || control_.first_before(notice) == nullptr) return;
        for (int round = 0; round < leaving_rounds(); ++round)
            tell(below(round, -1), {.id = head.id, .kind = head.kind}, {payload, head.size});
    }
    /// Decides on the judging rank which reports were the first; true when there were any. Called only when no note is
    /// left to read: if this rank has not read notes for long, another one may have decided, and its verdict must be
    /// read first.
    bool judge() {
        if (control_.reports.empty() || judging() != rank()) return false;
        while (!control_.reports.empty()) decide(control_.reports.front().notice.context);
        return true;
    }

    // What becomes of the peers.

    /// True when a peer has gone. Called only when no note is left to read, since a verdict of before comes first.
    /// Where this rank does not monitor, that ends all contexts. Others hear of it also where another failure has ended
    /// this rank's contexts: the peer may have been the one that told of that, and may not have told all. The loss is
    /// known here even where telling it throws.
    bool mourn() {
        const rank_t gone = port_.take_loss();
        if (gone == no_rank) return false;
        const abort_notice notice = notice_of_loss(gone);
        const abort_notice* const first = control_.first_before(notice);
        const bool is_news = first == nullptr || !rill::detail::same_failure(*first, notice);
        state_of(gone).has_gone = true;
        forsake(gone);
        control_.learn(notice);
        control_.any_failed |= !control_.monitors;
        tell_end(gone);
        if (is_news) tell_loss(gone);
        go_on_leaving();
        return true;
    }
    /// Who monitors finds out by itself.
    void tell_loss(rank_t gone) {
        for (rank_t peer = 0; peer < size(); ++peer)
            if (peer != rank() && !at(peer).asks_for_end)
                tell(peer, {.id = static_cast<std::uint64_t>(gone), .kind = note::loss});
    }
    /// The body of a peer has thrown. The peer asks for nothing more.
    void hear_failure(rank_t peer, const abort_notice& failure) {
        peer_state& of = state_of(peer);
        of.has_gone = true;
        of.failure = failure;
        outbox_.for_each_open([&](outgoing& sent) {
            if (sent.peer == peer) give_up(sent);
        });
        go_on_leaving();
    }
    /// Learns that a peer has left; true when one has. Called only when no note is left to read, and after the
    /// transfers: what the peer has said before is here.
    bool hear_goodbye() {
        const rank_t left = port_.take_goodbye();
        if (left == no_rank) return false;
        state_of(left).has_left = true;
        tell_end(left);
        go_on_leaving();
        return true;
    }
    /// Learns what else has become of a peer; true when there was news.
    bool hear_news() {
        if constexpr (MonitoringPort<Port>) {
            const peer_news news = port_.take_news();
            if (news.peer == no_rank) return false;
            peer_state& of = state_of(news.peer);
            if (news.change == peer_change::arrived) {
                forsake(news.peer);
                of = {.life = of.life};
                watch_.begins(news.peer);
                if (control_.monitors || control_.has_left)
                    tell(news.peer, {.id = control_.monitors ? 0U : 1U, .kind = note::monitor});
            } else {
                of.has_gone = of.is_silent = news.change == peer_change::silent;
                watch_.be_silent(news.peer, of.is_silent);
                if (of.is_silent) tell_loss(news.peer);
            }
            tell_change(news.peer, news.change);
            return true;
        }
        return false;
    }
    /// Nothing more comes of this life of a peer.
    void tell_end(rank_t peer) {
        if (watch_.ends(peer)) tell_change(peer, peer_change::ended);
    }
    void tell_change(rank_t of, peer_change change) {
        for (const channel on : watch_.channels()) say(of, on, change);
    }
    void say(rank_t of, channel on, peer_change change) {
        const buffer bytes = to_message({.kind = change, .incarnation = life_of(of)});
        deliver(of,
                {.context = on.context,
                 .tag = on.tag,
                 .size = static_cast<std::uint32_t>(bytes.size()),
                 .kind = note::lent},
                bytes.data());
    }
    /// Whether all others have ended or are silent.
    bool nobody_is_left(bool after_failure) const {
        for (rank_t peer = 0; peer < size(); ++peer) {
            if (peer == rank() || life_of(peer) == 0 || (after_failure && at(peer).monitors)) continue;
            if (!watch_.has_ended(peer) && !at(peer).is_silent) return false;
        }
        return true;
    }
    bool any_is_away() const {
        return std::any_of(peers_.begin(), peers_.end(),
                           [](const peer_state& of) { return of.has_gone || of.has_left; });
    }

    // The rounds in which all ranks learn that all have ended.

    void tell_own_end(rank_t peer) {
        if (!control_.failure) return tell(peer, {.kind = note::ended});
        tell(peer, {.kind = note::ended}, packed_notice(*control_.failure).view());
    }
    int leaving_rounds() const { return static_cast<int>(std::bit_width(static_cast<unsigned>(size() - 1))); }
    /// The rank 2^round below this one, or above it.
    rank_t below(int round, int sign = 1) const {
        return static_cast<rank_t>((rank() + std::int64_t{size()} - sign * (std::int64_t{1} << round)) % size());
    }
    /// Whether the rank that tells this one in a round has done so, or is not there any more.
    bool is_heard(int round) const { return (control_.rounds_heard >> round & 1) != 0 || is_away(below(round)); }
    /// After as many rounds as the number of ranks has bits, each rank knows that all have ended.
    void go_on_leaving() {
        for (int& told = control_.rounds_told;
             control_.has_left && told < leaving_rounds() && (told == 0 || is_heard(told - 1)); ++told)
            tell(below(told, -1),
                 {.id = 2U * static_cast<unsigned>(told) + (control_.any_failed ? 1U : 0U), .kind = note::leave});
    }
};

}}}  // namespace rill::RILL_ABI::mail
