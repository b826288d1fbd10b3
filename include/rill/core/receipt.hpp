#pragma once

#include <rill/core/time.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// Messages and bytes of one rank, as its transport counts them: payload and rill's headers, without the overhead of
/// lower layers.
struct traffic {
    std::uint64_t messages_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t messages_received = 0;
    std::uint64_t bytes_received = 0;

    /// Counts one message.
    constexpr void sent(std::uint64_t bytes) {
        ++messages_sent;
        bytes_sent += bytes;
    }
    constexpr void received(std::uint64_t bytes) {
        ++messages_received;
        bytes_received += bytes;
    }

    friend constexpr bool operator==(const traffic&, const traffic&) = default;
    friend constexpr traffic operator-(const traffic& a, const traffic& b) {
        return {a.messages_sent - b.messages_sent, a.bytes_sent - b.bytes_sent,
                a.messages_received - b.messages_received, a.bytes_received - b.bytes_received};
    }
    constexpr traffic& operator+=(const traffic& b) {
        messages_sent += b.messages_sent;
        bytes_sent += b.bytes_sent;
        messages_received += b.messages_received;
        bytes_received += b.bytes_received;
        return *this;
    }
};

/// What a collective did on this rank.
struct receipt {
    std::uint64_t operation_number = 0;
    int contributors = 0;   ///< ranks whose contribution is in the result
    double weight = 0;      ///< sum of their weights
    std::uint32_t age = 0;  ///< age of the oldest contribution, in steps
    int rounds = 0;
    traffic wire{};        ///< traffic of this operation alone
    duration elapsed{};    ///< on the transport's clock
    int detours = 0;       ///< messages that this rank sent by way of another; see `DetouringTopology`
    int silent_links = 0;  ///< of this rank at the end; `is_silent(group, peer)` says which
};

}}  // namespace rill::RILL_ABI
