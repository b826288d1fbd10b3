// How a post office handles the notes about messages.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_post_office.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

template <class Port>
void post_office<Port>::handle(rank_t source, const envelope& head, const std::byte* payload) {
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
            if (outgoing* const sent = outbox_.find(head.id); sent != nullptr && !sent->is_moving)
                sent->is_unasked ? stop(*sent) : outbox_.close(*sent);
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

template <class Port>
void post_office<Port>::refuse(rank_t source, const envelope& head) const {
    throw protocol_error(abort_notice{
        .context = every_context,
        .kind = failure::protocol,
        .culprit = source,
        .reason = "rank " + std::to_string(source) + " sent rank " + std::to_string(rank()) + " a note of kind " +
                  std::to_string(static_cast<int>(head.kind)) + ", with " + std::to_string(head.size) +
                  " bytes, which this build does not know: all ranks must run the same program"});
}

template <class Port>
void post_office<Port>::deliver(rank_t source, const envelope& head, const std::byte* payload) {
    const channel on{.context = head.context, .tag = head.tag};
    node& n = inbox_.append(source, on);
    n.handed = head.kind == note::handed || head.kind == note::announce_handed;
    n.id = head.id;
    n.life = state_of(source).life;
    n.count = head.pieces;
    if (head.kind == note::lent || head.kind == note::handed) {
        keep_payload(n, payload, head.size);
        n.size = head.size;
        n.pieces = byte_view(n.payload(), n.size);
    } else {
        n.size = 0;
        for (std::size_t i = 0; i < n.count; ++i) n.size += n.sizes[i] = announcement::size_of_piece(payload, i);
        if (head.kind == note::begin) {
            take_beginning(n, byte_view(payload, head.size).subspan(announcement::table));
        } else {
            keep_payload(n, payload, head.size);
            n.is = node_state::announced;
        }
    }
    if (watch_.is_fenced(source)) return drop(n);
    if (head.context != known_open_) {
        if (control_.calls.is_closed(head.context)) return drop(n);
        known_open_ = head.context;
    }
    if (const auto expected = expectations_.take(source, on)) fulfil(n, *expected);
}

template <class Port>
void post_office<Port>::keep_payload(node& n, const std::byte* payload, std::size_t size) {
    if (size <= node::inside) {
        if (size != 0) std::memcpy(n.small, payload, size);
        return;
    }
    if (payload == landing_.data() + storage::alignment) {
        n.note = std::exchange(landing_, landings_.take(landing_size()));
        return;
    }
    n.note = landings_.take(landing_size());
    std::memcpy(n.note.data() + storage::alignment, payload, size);
}

}}}  // namespace rill::RILL_ABI::mail
