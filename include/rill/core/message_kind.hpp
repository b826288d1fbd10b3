#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>

#include <cstdint>
#include <string_view>

namespace rill { inline namespace RILL_ABI {

/// What a frame says: a protocol, and one of that protocol's own numbers. The collectives are protocol 0; their numbers
/// are those of `operation`. Every other protocol is known by the hash of its name, and numbers its messages from 1.
struct message_kind {
    std::uint16_t protocol = 0;
    std::uint8_t number = 0;

    constexpr message_kind() = default;
    constexpr message_kind(operation of) : number(static_cast<std::uint8_t>(of)) {}
    constexpr message_kind(std::string_view name, std::uint8_t its_number)
        : protocol(static_cast<std::uint16_t>(1 + fingerprint(name) % 0xFFFFU)), number(its_number) {}

    friend constexpr bool operator==(const message_kind&, const message_kind&) = default;
};

}}  // namespace rill::RILL_ABI
