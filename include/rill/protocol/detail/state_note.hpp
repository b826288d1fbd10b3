#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What ranks say when one of them gets the state of the others: a snapshot, and the updates of single steps. The state
/// at step s has s updates in it. Update s leads from s - 1 to s.
struct state_note {
    enum class what : std::uint8_t {
        want = 1,  ///< the receiver sends `length` bytes from `offset` on, of this item or, of a snapshot, of its own
        piece,     ///< `length` bytes of the item follow
        refusal    ///< see `why`
    };
    enum class item : std::uint8_t { snapshot = 1, update };
    enum class why : std::uint8_t {
        none,
        later,        ///< the sender does not have it yet, and sends it when it does
        not_kept,     ///< the update is no longer there
        old_epoch,    ///< the sender's view is older than the receiver's
        other_build,  ///< the two do not hold states of one layout
        old_life,     ///< a later life of the receiver has begun
        taken_seat    ///< another rank has the receiver's seat
    };

    what kind = what::want;
    item of = item::snapshot;
    why reason = why::none;
    std::uint32_t epoch = 0;        ///< of the sender's view
    std::uint64_t incarnation = 0;  ///< of the rank that gets the state
    std::uint64_t build = 0;        ///< hash of what both must have alike
    std::uint64_t step = 0;         ///< of the item
    std::uint64_t checksum = 0;     ///< of the whole item; 0 where any snapshot will do
    std::uint64_t size = 0;         ///< of the whole item, in bytes
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t latest = 0;  ///< the latest step that the sender has committed

    friend bool operator==(const state_note&, const state_note&) = default;
};

/// The bytes of a note, little-endian: "rstt", kind, item, reason, 0 (1 each), epoch (4), 0 (4), and eight numbers
/// of 8.
inline constexpr std::size_t state_note_bytes = 80;

/// The message of a note and of the bytes that follow it.
inline buffer to_message(const state_note& note, byte_view bytes) {
    buffer message(state_note_bytes + bytes.size());
    std::byte* const to = message.data();
    std::memset(to, 0, state_note_bytes);
    std::memcpy(to, "rstt", 4);
    to[4] = static_cast<std::byte>(note.kind);
    to[5] = static_cast<std::byte>(note.of);
    to[6] = static_cast<std::byte>(note.reason);
    std::memcpy(to + 8, &note.epoch, 4);
    const std::uint64_t numbers[] = {note.incarnation, note.build,  note.step,   note.checksum,
                                     note.size,        note.offset, note.length, note.latest};
    std::memcpy(to + 16, numbers, sizeof numbers);
    if (!bytes.empty()) std::memcpy(to + state_note_bytes, bytes.data(), bytes.size());
    return message;
}

/// A message taken apart.
struct state_message {
    state_note note;
    byte_view bytes;
};

/// Reads a message. Throws `protocol_error` unless it is what `to_message` makes of a note that makes sense.
inline state_message read_state_message(byte_view message) {
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw protocol_error(std::string("state transfer: ") + what);
    };
    require(message.size() >= state_note_bytes && std::memcmp(message.data(), "rstt", 4) == 0,
            "a message that is no note");
    const auto small = [&](std::size_t at) { return std::to_integer<unsigned>(message[at]); };
    std::uint64_t numbers[8];
    std::uint32_t unused = 0;
    state_note note;
    std::memcpy(&note.epoch, message.data() + 8, 4);
    std::memcpy(&unused, message.data() + 12, 4);
    std::memcpy(numbers, message.data() + 16, sizeof numbers);
    require(1 <= small(4) && small(4) <= 3 && 1 <= small(5) && small(5) <= 2 && small(6) <= 6 && small(7) == 0 &&
                unused == 0,
            "a note of unknown kind");
    note.kind = static_cast<state_note::what>(small(4));
    note.of = static_cast<state_note::item>(small(5));
    note.reason = static_cast<state_note::why>(small(6));
    note.incarnation = numbers[0], note.build = numbers[1], note.step = numbers[2], note.checksum = numbers[3];
    note.size = numbers[4], note.offset = numbers[5], note.length = numbers[6], note.latest = numbers[7];
    const byte_view bytes = message.subspan(state_note_bytes);
    require((note.kind == state_note::what::refusal) == (note.reason != state_note::why::none),
            "a reason goes with a refusal");
    if (note.kind == state_note::what::piece)
        require(note.length == bytes.size() && note.length <= note.size && note.offset <= note.size - note.length,
                "a piece must lie in its item");
    else
        require(bytes.empty(), "bytes follow a note that has none");
    return {note, bytes};
}

}}}  // namespace rill::RILL_ABI::detail
