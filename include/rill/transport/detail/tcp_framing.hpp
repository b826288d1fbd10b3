// What travels on a connection after its handshake: frames of a head of fixed size, then content. Numbers are
// little-endian.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Writes the lowest `count` bytes of a number, the lowest first.
inline void put(std::byte* at, std::uint64_t number, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) at[i] = static_cast<std::byte>(number >> (8 * i));
}
/// Reads a number of `count` bytes, the lowest first.
inline std::uint64_t get(const std::byte* at, std::size_t count) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < count; ++i) number |= static_cast<std::uint64_t>(at[i]) << (8 * i);
    return number;
}

enum class frame_kind : std::uint8_t {
    note = 1,   ///< a short message, all of it
    part,       ///< the first bytes of a long message; `value` is its size, `tag` its tag
    part_more,  ///< the next bytes of the part that has begun
    goodbye,    ///< nothing follows
    ack,        ///< `value` bytes have been taken; not numbered, and never repeated
    stretch     ///< of several connections: bytes of the stream from the byte `value` on; not numbered
};

/// The head of a frame.
struct frame_head {
    static constexpr std::size_t size_bytes = 16;

    std::uint32_t size = 0;  ///< bytes that follow
    frame_kind kind = frame_kind::ack;
    std::uint16_t tag = 0;
    std::uint64_t value = 0;

    /// Whether its bytes count in the stream that a new connection resumes.
    static bool is_numbered(std::byte kind) { return kind != static_cast<std::byte>(frame_kind::ack); }

    void write(std::byte* at) const {
        at[0] = static_cast<std::byte>(kind);
        at[1] = std::byte{0};
        put(at + 2, tag, 2);
        put(at + 4, size, 4);
        put(at + 8, value, 8);
    }
    static frame_head read(const std::byte* at) {
        return {.size = static_cast<std::uint32_t>(get(at + 4, 4)),
                .kind = static_cast<frame_kind>(at[0]),
                .tag = static_cast<std::uint16_t>(get(at + 2, 2)),
                .value = get(at + 8, 8)};
    }

    friend bool operator==(const frame_head&, const frame_head&) = default;
};

/// The largest contents that a receiver takes.
struct frame_limits {
    std::size_t note_bytes = std::size_t{1} << 20;
    std::size_t fragment_bytes = std::size_t{1} << 18;
    std::uint64_t part_bytes = std::uint64_t{1} << 30;
};

/// What is wrong with a head, or null. `missing` bytes of a part that has begun have not come.
inline const char* fault_of(const std::byte* at, const frame_limits& most, std::uint64_t missing) {
    const frame_head head = frame_head::read(at);
    if (at[1] != std::byte{0}) return "a frame with an unknown flag";
    const bool is_part = head.kind == frame_kind::part || head.kind == frame_kind::part_more;
    if (!is_part && head.tag != 0) return "a tag where none belongs";
    switch (head.kind) {
        case frame_kind::note:
            if (head.value != 0) return "a note with a value";
            return head.size > most.note_bytes ? "a note that is too long" : nullptr;
        case frame_kind::part:
            if (missing != 0) return "a part within a part";
            if (head.value > most.part_bytes) return "a part that is too long";
            if (head.size > head.value || (head.size == 0) != (head.value == 0)) return "a part of a wrong size";
            return head.size > most.fragment_bytes ? "a fragment that is too long" : nullptr;
        case frame_kind::part_more:
            if (head.value != 0 || head.size == 0 || head.size > missing) return "a fragment of no part";
            return head.size > most.fragment_bytes ? "a fragment that is too long" : nullptr;
        case frame_kind::goodbye: return head.size != 0 || head.value != 0 ? "a goodbye with content" : nullptr;
        case frame_kind::ack: return head.size != 0 ? "an acknowledgement with content" : nullptr;
        case frame_kind::stretch: break;
    }
    return "a frame of an unknown kind";
}

/// Throws a `protocol_error` that names the peer whose bytes are wrong.
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_bytes(rank_t self, rank_t peer, const char* what) {
    throw protocol_error(abort_notice{
        .context = every_context,
        .kind = failure::protocol,
        .culprit = peer,
        .reason = text_of({"rank ", peer, " sent rank ", self, " ", what, ": all ranks must run the same program"})});
}

}}}  // namespace rill::RILL_ABI::tcp::detail
