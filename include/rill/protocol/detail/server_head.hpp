#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The tags of a parameter server's session.
inline constexpr std::uint32_t to_servers = 0;
inline constexpr std::uint32_t to_workers = 1;

/// The header of a message of a parameter server. Where the transport tells that a rank has ended, it is that of
/// `server_kind::ended`, and of no kind where it tells something else. Throws unless `is_due(kind)`.
template <class Session, class Message, class Place, class IsDue>
wire::header server_head_of(const Session& of, const Message& got, const Place& place, IsDue&& is_due) {
    return read_from(place, got.source(), [&]() -> wire::header {
        if (got.pieces().size_bytes() < wire::header_bytes) {
            const bool has_ended = read_peer_event(got).kind == peer_change::ended;
            return {.kind = has_ended ? server_kind::ended : message_kind{}};
        }
        const wire::header head = frame_reader(got.pieces()).peek();
        of.require_own(head);
        wire::detail::require(is_due(head.kind), "its kind is not one that is due here");
        return head;
    });
}

}}}  // namespace rill::RILL_ABI::detail
