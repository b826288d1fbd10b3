// What the notes of a post office make happen.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/copy_across.hpp>
#include <rill/transport/detail/mpi_post_office.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace rill::inline RILL_ABI::mpi::detail {

inline void post_office::send_whole(note kind, rank_t peer, channel on, const byte_pieces& pieces, std::size_t size) {
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

inline std::uint64_t post_office::announce(note kind, outgoing& sent, channel on) {
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

inline void post_office::ask(node& n, std::span<const byte_span> targets) {
    n.straight = transfers_.place(n, targets);
    if (n.source == rank()) {
        transfers_.copy(n);
        return assemble(n);
    }
    const std::uint32_t tag = transfers_.expect(n);
    tell(n.source, {.context = n.parts.size(), .id = n.id, .tag = tag, .kind = note::ask});
    if (!n.straight) return;
    assemble(n);  // the small pieces are here; the large ones will be
    for (std::size_t i = 0, at = 0; i < n.count; at += n.sizes[i++])
        if (transfers_.is_small(n.sizes[i])) rill::detail::copy_across(n.pieces[i], targets, at);
}

/// A message that is expected comes before anybody waits for it.
inline void post_office::fulfil(node& n, const expectation& by) {
    n.expected = true;
    if (n.is != node::state::announced) return;
    ask(n, by.has_room_for(n.size) && n.source != rank() ? by.places() : std::span<const byte_span>{});
    n.placed = std::exchange(n.straight, false);
}

/// Nothing that comes first is here: asks for what is announced. Only what comes from this rank is here at once.
inline node* post_office::ask_first(std::span<const rank_t> peers, channel on) {
    node* here = nullptr;
    for (const rank_t peer : peers) {
        node* const n = inbox_.first(peer, on);
        if (n == nullptr || n->is != node::state::announced) continue;
        ask(*n);
        if (n->is == node::state::complete) here = n;
    }
    return here;
}

inline void post_office::ended(node& n, bool withdrawn) {
    if (n.doomed) return release(n);
    if (!withdrawn) return assemble(n);
    if (n.claimed) return;
    inbox_.unlink(n);
    release(n);
}

/// Says where the pieces of an announced message lie.
inline void post_office::assemble(node& n) {
    const std::byte* content = n.payload() + announcement::table;
    n.pieces = {};
    std::size_t part = 0;
    for (std::size_t i = 0; i < n.count; ++i) {
        if (transfers_.is_small(n.sizes[i])) {
            n.pieces.push({content, n.sizes[i]});
            content += announcement::aligned(n.sizes[i]);
            continue;
        }
        n.pieces.push({n.parts[part].data(), n.sizes[i]});
        for (std::size_t left = n.sizes[i]; left > 0; left -= n.parts[part++].size()) {
        }
    }
}

inline void post_office::taken(node& n) {
    inbox_.unlink(n);
    accept(n);
}

inline void post_office::drop(node& n) {
    repay(n);
    if (n.is == node::state::announced) tell(n.source, {.id = n.id, .kind = note::drop});
    discard(n);
}

inline void post_office::discard(node& n) noexcept {
    inbox_.unlink(n);
    if (n.is == node::state::asked)
        n.doomed = true;
    else
        release(n);
}

/// Credit goes back in lumps, or at once where the sender waits for it.
inline void post_office::repay(const node& n) {
    if (!n.handed) return;
    peer_state& from = peers_[static_cast<std::size_t>(n.source)];
    if (n.source == rank()) {
        from.outstanding -= n.size;
        return;
    }
    from.owed += n.size;
    if (from.wanted || from.owed >= chosen_.mailbox_bytes / 4) pay(n.source);
}

inline void post_office::pay(rank_t peer) {
    peer_state& to = peers_[static_cast<std::size_t>(peer)];
    if (to.owed == 0) return;
    to.wanted = false;
    tell(peer, {.id = std::exchange(to.owed, 0), .kind = note::credit});
}

inline void post_office::handle(rank_t source, const envelope& head, const std::byte* payload) {
    if (head.kind == note::ask) return transfers_.answer(source, head.id, head.tag, head.context);
    if (head.incarnation != incarnation_) return;
    if (!is_whole(head, payload, transfers_.small())) refuse(source, head, sizeof head + head.size);
    peer_state& peer = peers_[static_cast<std::size_t>(source)];
    switch (head.kind) {
        case note::lent:
        case note::handed:
        case note::announce_lent:
        case note::announce_handed: return deliver(source, head, payload);
        case note::withdraw:
            return inbox_.for_each_of(
                source, [&](const node& n) { return n.id == head.id && n.is == node::state::announced; },
                [&](node& n) { discard(n); });
        case note::drop:
            if (outgoing* const sent = outbox_.find(head.id); sent != nullptr && !sent->is_moving) outbox_.close(*sent);
            return;
        case note::credit:
            peer.outstanding -= head.id;
            peer.want_sent = false;
            return;
        case note::want: peer.wanted = true; return pay(source);
        default: return handle_control(source, head, payload);
    }
}

inline void post_office::refuse(rank_t source, const envelope& head, std::size_t size) const {
    throw protocol_error(abort_notice{
        .kind = failure::protocol,
        .culprit = source,
        .reason = "rank " + std::to_string(source) + " sent rank " + std::to_string(rank()) + " a note of kind " +
                  std::to_string(static_cast<int>(head.kind)) + " in " + std::to_string(size) +
                  " bytes, which is none of this build: all ranks must run the same program"});
}

inline void post_office::deliver(rank_t source, const envelope& head, const std::byte* payload) {
    const channel on{.context = head.context, .tag = head.tag};
    node& n = inbox_.append(source, on);
    keep_payload(n, payload, head.size);
    n.handed = head.kind == note::handed || head.kind == note::announce_handed;
    n.id = head.id;
    n.count = head.pieces;
    if (head.kind == note::lent || head.kind == note::handed) {
        n.size = head.size;
        n.pieces = byte_view(n.payload(), n.size);
    } else {
        n.is = node::state::announced;
        n.size = 0;
        for (std::size_t i = 0; i < n.count; ++i) n.size += n.sizes[i] = announcement::size_of_piece(n.payload(), i);
    }
    if (head.context != known_open_) {
        if (control_.calls.is_closed(head.context)) return drop(n);
        known_open_ = head.context;
    }
    if (const auto expected = expectations_.take(source, on)) fulfil(n, *expected);
}

inline void post_office::keep_payload(node& n, const std::byte* payload, std::size_t size) {
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

inline void post_office::handle_control(rank_t source, const envelope& head, const std::byte* payload) {
    switch (head.kind) {
        case note::report: return judge(source, packed_notice::unpack({payload, head.size}));
        case note::verdict: return learn(packed_notice::unpack({payload, head.size}));
        case note::question:
            control_.remember({.peer = source, .context = head.context, .number = head.id});
            return answer_questions(head.context);
        case note::answer: {
            call_signature call;
            std::memcpy(&call, payload, sizeof call);
            return control_.learn(source, head.context, call);
        }
        case note::leave:
            control_.any_failed |= head.id != 0;
            if (++control_.ranks_left < size()) return;
            tell_others({.id = control_.any_failed ? 1U : 0U, .kind = note::all_left});
            control_.all_left = true;
            return;
        default: control_.any_failed = head.id != 0; control_.all_left = true;
    }
}

inline void post_office::learn(const abort_notice& notice) {
    if (control_.find_notice(notice.context) == nullptr) control_.notices.emplace(notice.context, notice);
}

/// On rank 0, whose word is the order of notices.
inline void post_office::judge(rank_t source, const abort_notice& notice) {
    if (const abort_notice* const first = control_.find_notice(notice.context))
        tell(source, {.kind = note::verdict}, packed_notice(*first).view());
    else
        decide(notice);
}

/// Tells those who have asked what has been entered by now: the call in question, or a later one meanwhile.
inline void post_office::answer_questions(std::uint64_t context) {
    const auto answered = [&](const control::question& asked) {
        if (asked.context != context) return false;
        const auto entered = control_.calls.entered_or_later(context, asked.number);
        if (!entered) return false;
        tell(asked.peer, {.context = context, .kind = note::answer},
             {reinterpret_cast<const std::byte*>(&*entered), sizeof(call_signature)});
        return entered->number == asked.number;
    };
    std::erase_if(control_.questions, answered);
}

}  // namespace rill::inline RILL_ABI::mpi::detail
