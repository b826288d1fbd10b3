// What hosts of machines share: see `run_machine`.
#pragma once

#include <rill/concept/peer_event.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/time.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The header of a message of the session. Throws if it is of another one, and what `check(head)` throws. Where the
/// transport tells what becomes of a rank, that is the kind: `kind_of(change)`, or none.
template <class Session, class Message, class Place, class KindOf, class Check>
wire::header head_of_message(const Session& of, const Message& got, const Place& place, KindOf&& kind_of,
                             Check&& check) {
    return read_from(place, got.source(), [&]() -> wire::header {
        if (got.pieces().size_bytes() < wire::header_bytes) return {.kind = kind_of(read_peer_event(got).kind)};
        const wire::header head = frame_reader(got.pieces()).peek();
        of.require_own(head);
        check(head);
        return head;
    });
}
inline void require_due(bool is_due) { wire::detail::require(is_due, "its kind is not one that is due here"); }

/// Tells this rank's activity that runs a machine on tag 0, by a message made in `room`. Throws nothing: if the run has
/// failed, that activity finds it itself.
template <class Net>
void notify(const session<Net>& of, message_kind kind, std::uint64_t number, buffer room = kept_room(0)) {
    try {
        of.net().post(of.rank(), of.on(0), empty_frame(of.stamped({}, kind, number), std::move(room)), deadline::never);
    } catch (const error&) {  // the run has failed
    }
}

}}}  // namespace rill::RILL_ABI::detail
