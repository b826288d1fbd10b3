// The sender's part of a post office.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/mail_post_office.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

template <class Port>
std::uint64_t post_office<Port>::post(rank_t peer, channel on, const byte_pieces& pieces) {
    const std::size_t size = pieces.size_bytes();
    count_sent(size);
    if (is_lost_to(peer)) return 0;
    if (size <= chosen_.eager_bytes) return send_whole(note::lent, peer, on, pieces, size), 0;
    outgoing& sent = outbox_.open(peer);
    sent.pieces = pieces;
    if (goes_unasked(peer, size)) return begin(sent, on, size);
    return announce(note::announce_lent, sent, on);
}

template <class Port>
bool post_office<Port>::post(rank_t peer, channel on, buffer& bytes) {
    std::size_t& outstanding = state_of(peer).outstanding.handed;
    const std::size_t size = bytes.size();
    if (is_lost_to(peer)) {
        count_sent(size);
        buffer().swap(bytes);
        return true;
    }
    if (outstanding != 0 && (outstanding > chosen_.mailbox_bytes || size > chosen_.mailbox_bytes - outstanding))
        return want(peer), false;
    outstanding += size;
    count_sent(size);
    if (size <= chosen_.eager_bytes) {
        send_whole(note::handed, peer, on, byte_view(bytes), size);
        buffer().swap(bytes);
        return true;
    }
    outgoing& sent = outbox_.open(peer);
    sent.owned = std::move(bytes);
    sent.pieces = byte_view(sent.owned);
    announce(note::announce_handed, sent, on);
    return true;
}

template <class Port>
bool post_office<Port>::withdraw(std::uint64_t id) {
    outgoing* const sent = outbox_.find(id);
    if (sent == nullptr) return true;
    if (sent->is_moving) return false;
    if (sent->is_unasked) return stop(*sent), true;
    const rank_t peer = sent->peer;
    outbox_.close(*sent);
    tell(peer, {.id = id, .kind = note::withdraw});
    return true;
}

/// Whether a borrowed message is sent without being asked for. It is if the receiver's memory for such messages has
/// room for all of it, so that it never stops half-way.
template <class Port>
bool post_office<Port>::goes_unasked(rank_t peer, std::size_t size) {
    if (peer == rank() || !chosen_.sends_unasked.value_or(port_.neighbours() != this->size())) return false;
    std::size_t& outstanding = state_of(peer).outstanding.unasked;
    if (size > chosen_.mailbox_bytes) return false;
    if (size > chosen_.mailbox_bytes - outstanding) return want(peer), false;
    outstanding += size;
    return true;
}

/// Sends the sizes of the pieces at once, so that messages stay in order, and bytes if no other message is under way.
template <class Port>
std::uint64_t post_office<Port>::begin(outgoing& sent, channel on, std::size_t size) {
    peer_state& to = state_of(sent.peer);
    const std::size_t room = to.unasked.empty() ? chosen_.eager_bytes - announcement::table : 0;
    sent.is_unasked = true;
    sent.begun = std::min(room, size - 1);
    const envelope head{.context = on.context,
                        .id = sent.id,
                        .incarnation = incarnation_,
                        .tag = on.tag,
                        .size = static_cast<std::uint32_t>(announcement::table + sent.begun),
                        .kind = note::begin,
                        .pieces = static_cast<std::uint8_t>(sent.pieces.count())};
    parcel& made = parcels_.compose(head.size);
    announcement::write_sizes(sent.pieces, made.payload());
    rill::detail::copy_from(sent.pieces, 0, {made.payload() + announcement::table, sent.begun});
    parcels_.send(head, sent.peer);
    to.unasked.push_back(&sent);
    ++unasked_;
    return head.id;
}

/// Sends the next note of the first message to each peer; true if there was any.
template <class Port>
bool post_office<Port>::send_on() {
    bool any = false;
    for (rank_t peer = 0; peer < size(); ++peer) {
        auto& waiting = state_of(peer).unasked;
        if (waiting.empty() || parcels_.flying_to(peer) >= most_flying) continue;
        outgoing& sent = *waiting.front();
        const std::size_t left = sent.pieces.size_bytes() - sent.begun, next = std::min(left, chosen_.eager_bytes);
        const envelope head{
            .id = sent.id, .incarnation = incarnation_, .size = static_cast<std::uint32_t>(next), .kind = note::go_on};
        rill::detail::copy_from(sent.pieces, sent.begun, {parcels_.compose(next).payload(), next});
        parcels_.send(head, peer);
        any = true;
        sent.begun += next;
        if (next != left) continue;
        waiting.erase(waiting.begin());
        --unasked_;
        outbox_.close(sent);
    }
    return any;
}

/// Ends a message that goes unasked before all of it has been sent.
template <class Port>
void post_office<Port>::stop(outgoing& sent) {
    unasked_ -= std::erase(state_of(sent.peer).unasked, &sent);
    tell(sent.peer, {.id = sent.id, .kind = note::withdraw});
    outbox_.close(sent);
}

/// Asks for credit, once until some comes.
template <class Port>
void post_office<Port>::want(rank_t peer) {
    if (!std::exchange(state_of(peer).want_sent, true)) tell(peer, {.kind = note::want});
}

template <class Port>
void post_office<Port>::send_whole(note kind, rank_t peer, channel on, const byte_pieces& pieces, std::size_t size) {
    const envelope head{.context = on.context,
                        .incarnation = incarnation_,
                        .tag = on.tag,
                        .size = static_cast<std::uint32_t>(size),
                        .kind = kind};
    parcel& sent = parcels_.compose(size);
    std::byte* at = sent.payload();
    for (const byte_view piece : pieces) {
        if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
        at += piece.size();
    }
    if (peer == rank())
        deliver(peer, head, sent.payload());
    else
        parcels_.send(head, peer);
}

template <class Port>
std::uint64_t post_office<Port>::announce(note kind, outgoing& sent, channel on) {
    const std::size_t size = announcement::size_bytes(sent.pieces, transfers_.small());
    const envelope head{.context = on.context,
                        .id = sent.id,
                        .incarnation = incarnation_,
                        .tag = on.tag,
                        .size = static_cast<std::uint32_t>(size),
                        .kind = kind,
                        .pieces = static_cast<std::uint8_t>(sent.pieces.count())};
    parcel& told = parcels_.compose(size);
    announcement::write(sent.pieces, transfers_.small(), told.payload());
    if (sent.peer == rank())
        deliver(sent.peer, head, told.payload());
    else
        parcels_.send(head, sent.peer);
    return head.id;
}

}}}  // namespace rill::RILL_ABI::mail
