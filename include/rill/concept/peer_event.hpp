#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// What becomes of a rank.
enum class peer_change : std::uint8_t {
    arrived = 1,   ///< a free seat has been taken, or a rank has begun anew
    ended = 2,     ///< its body has returned or thrown, or it was killed
    silent = 3,    ///< nothing has been heard of it for long; it may live
    recovered = 4  ///< it is heard again
};

/// What a monitored channel says of a peer: see `MonitoredTransport`.
struct peer_event {
    peer_change kind{};
    std::uint64_t incarnation = 0;  ///< the life that it happened to

    friend constexpr bool operator==(const peer_event&, const peer_event&) = default;
};

/// The size of a message that says a `peer_event`.
inline constexpr std::size_t peer_event_bytes = 16;

/// The message that says `event`: "rpev", the kind in four bytes, the incarnation in eight, little-endian.
inline buffer to_message(const peer_event& event) {
    buffer bytes;
    for (const char c : {'r', 'p', 'e', 'v'}) bytes.push_back(static_cast<std::byte>(c));
    const auto put = [&](std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xFFU));
    };
    put(static_cast<std::uint64_t>(event.kind), 4);
    put(event.incarnation, 8);
    return bytes;
}

/// Reads a message of a monitored channel. Throws `protocol_error` unless it is what `to_message` makes.
template <class M>
peer_event read_peer_event(const M& message) {
    std::array<std::byte, peer_event_bytes> bytes{};
    std::size_t count = 0;
    for (const byte_view piece : message.pieces())
        for (const std::byte b : piece) {
            if (count < peer_event_bytes) bytes[count] = b;
            ++count;
        }
    const auto number = [&](std::size_t at, unsigned length) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < length; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
        return value;
    };
    const std::uint64_t kind = number(4, 4);
    if (count != peer_event_bytes || number(0, 4) != 0x76657072 || kind < 1 || kind > 4)
        throw protocol_error(
            text_of({"rank ", message.source(), " is said to have changed by a message that is no peer_event"}));
    return {.kind = static_cast<peer_change>(kind), .incarnation = number(8, 8)};
}

}}  // namespace rill::RILL_ABI
