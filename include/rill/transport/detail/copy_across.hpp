#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Writes the pieces into the targets, one after the other, from byte `skipped` of the targets on. The targets must
/// have room for all pieces.
inline void copy_across(const byte_pieces& pieces, std::span<const byte_span> targets, std::size_t skipped = 0) {
    auto target = targets.begin();
    std::size_t written = skipped;
    for (byte_view piece : pieces)
        while (!piece.empty()) {
            while (written >= target->size()) {
                written -= target->size();
                ++target;
            }
            const std::size_t count = std::min(piece.size(), target->size() - written);
            std::memcpy(target->data() + written, piece.data(), count);
            piece = piece.subspan(count);
            written += count;
        }
}

/// Copies the bytes of `pieces` from byte `at` on.
inline void copy_from(const byte_pieces& pieces, std::size_t at, byte_span to) {
    for (const byte_view piece : pieces) {
        if (at >= piece.size()) {
            at -= piece.size();
            continue;
        }
        const std::size_t size = std::min(piece.size() - at, to.size());
        if (size == 0) return;
        std::memcpy(to.data(), piece.data() + at, size);
        to = to.subspan(size);
        at = 0;
    }
}

/// Copies a message that has arrived into the targets of `receive_into`; throws `protocol_error` where the sizes
/// differ.
template <class Message>
void copy_message(rank_t self, const Message& from, channel on, std::span<const byte_span> targets) {
    const std::size_t room = size_bytes(targets);
    const byte_pieces pieces = from.pieces();
    if (room != pieces.size_bytes())
        throw protocol_error(
            text_of({"rank ", self, " expects ", room, " bytes from rank ", from.source(), " (context ", on.context,
                     ", tag ", on.tag, "), which sent ", pieces.size_bytes()}));
    copy_across(pieces, targets);
}

}}}  // namespace rill::RILL_ABI::detail
