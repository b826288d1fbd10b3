// What a post office hears of the lives of its peers, and how it tells of them.
#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/mail_control_rules.hpp>
#include <rill/transport/detail/mail_post_office.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

template <class Port>
void post_office<Port>::monitor(channel on) {
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
template <class Port>
void post_office<Port>::fence(rank_t peer, std::uint64_t incarnation) {
    if (incarnation == 0 || incarnation != life_of(peer)) return;
    watch_.fence(peer);
    inbox_.for_each_of(peer, [&](node& n) { drop(n); });
}

/// True when a peer has gone. Called only when no note is left to read, since a verdict of before comes first. Where
/// this rank does not monitor, that ends all contexts. Others hear of it also where another failure has ended this
/// rank's contexts: the peer may have been the one that told of that, and may not have told all. The loss is known here
/// even where telling it throws.
template <class Port>
bool post_office<Port>::mourn() {
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
template <class Port>
void post_office<Port>::tell_loss(rank_t gone) {
    for (rank_t peer = 0; peer < size(); ++peer)
        if (peer != rank() && !at(peer).asks_for_end)
            tell(peer, {.id = static_cast<std::uint64_t>(gone), .kind = note::loss});
}

/// The body of a peer has thrown. The peer asks for nothing more.
template <class Port>
void post_office<Port>::hear_failure(rank_t peer, const abort_notice& failure) {
    peer_state& of = state_of(peer);
    of.has_gone = true;
    of.failure = failure;
    outbox_.for_each_open([&](outgoing& sent) {
        if (sent.peer == peer && !sent.is_moving) sent.is_unasked ? stop(sent) : outbox_.close(sent);
    });
    go_on_leaving();
}

/// Learns that a peer has left; true when one has. Called only when no note is left to read, and after the transfers:
/// what the peer has said before is here.
template <class Port>
bool post_office<Port>::hear_goodbye() {
    const rank_t left = port_.take_goodbye();
    if (left == no_rank) return false;
    state_of(left).has_left = true;
    tell_end(left);
    go_on_leaving();
    return true;
}

/// Learns what else has become of a peer; true when there was news.
template <class Port>
bool post_office<Port>::hear_news() {
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
template <class Port>
void post_office<Port>::tell_end(rank_t peer) {
    if (watch_.ends(peer)) tell_change(peer, peer_change::ended);
}
template <class Port>
void post_office<Port>::tell_change(rank_t of, peer_change change) {
    for (const channel on : watch_.channels()) say(of, on, change);
}
template <class Port>
void post_office<Port>::say(rank_t of, channel on, peer_change change) {
    const buffer bytes = to_message({.kind = change, .incarnation = life_of(of)});
    deliver(
        of,
        {.context = on.context, .tag = on.tag, .size = static_cast<std::uint32_t>(bytes.size()), .kind = note::lent},
        bytes.data());
}

/// Ends what stands for messages from and to a peer that nothing more comes from, and whose port has ended the rest.
/// Messages that are here can still be taken.
template <class Port>
void post_office<Port>::forsake(rank_t peer) {
    peer_state& of = state_of(peer);
    unasked_ -= of.unasked.size();
    of.unasked.clear();
    outbox_.for_each_open([&](outgoing& sent) {
        if (sent.peer == peer && !sent.is_moving) outbox_.close(sent);
    });
    inbox_.for_each_of(peer, [&](node& n) {
        if (n.is == node_state::announced || n.is == node_state::begun) discard(n);
    });
    of.arrivals.clear();
    of.outstanding = of.owed = {};
    of.came_unasked = 0;
    of.want_sent = of.wanted = false;
    ++of.life;
}

/// Whether all others have ended or are silent.
template <class Port>
bool post_office<Port>::nobody_is_left(bool after_failure) const {
    for (rank_t peer = 0; peer < size(); ++peer) {
        if (peer == rank() || life_of(peer) == 0 || (after_failure && at(peer).monitors)) continue;
        if (!watch_.has_ended(peer) && !at(peer).is_silent) return false;
    }
    return true;
}

template <class Port>
bool post_office<Port>::do_all_others_go_on() const {
    for (rank_t peer = 0; peer < size(); ++peer)
        if (peer != rank() && life_of(peer) != 0 && !is_away(peer) && !at(peer).monitors) return false;
    return true;
}
template <class Port>
bool post_office<Port>::any_is_away() const {
    return std::any_of(peers_.begin(), peers_.end(), [](const peer_state& of) { return of.has_gone || of.has_left; });
}

template <class Port>
void post_office<Port>::require_any(std::span<const rank_t> peers, channel on, deadline until) const {
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

}}}  // namespace rill::RILL_ABI::mail
