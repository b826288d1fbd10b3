// The sender's part of a post office.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_post_office.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

template <class Port>
std::uint64_t post_office<Port>::post(rank_t peer, channel on, const byte_pieces& pieces) {
    const std::size_t size = pieces.size_bytes();
    count_sent(size);
    if (size <= chosen_.eager_bytes) return send_whole(note::lent, peer, on, pieces, size), 0;
    outgoing& sent = outbox_.open(peer);
    sent.pieces = pieces;
    return announce(note::announce_lent, sent, on);
}

template <class Port>
bool post_office<Port>::post(rank_t peer, channel on, buffer& bytes) {
    peer_state& to = peers_[static_cast<std::size_t>(peer)];
    const std::size_t size = bytes.size();
    if (to.outstanding != 0 &&
        (to.outstanding > chosen_.mailbox_bytes || size > chosen_.mailbox_bytes - to.outstanding)) {
        if (!std::exchange(to.want_sent, true)) tell(peer, {.kind = note::want});
        return false;
    }
    to.outstanding += size;
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
    const rank_t peer = sent->peer;
    outbox_.close(*sent);
    tell(peer, {.id = id, .kind = note::withdraw});
    return true;
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
