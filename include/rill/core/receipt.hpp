#pragma once

#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
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

/// Ranks to which this rank's links are silent: how many, and the first of them.
struct silent_links {
    static constexpr std::size_t most = 8;

    std::size_t count = 0;
    std::array<rank_t, most> first{};

    constexpr void add(rank_t peer) {
        if (count < most) first[count] = peer;
        ++count;
    }
    constexpr bool has(rank_t peer) const {
        for (std::size_t i = 0; i < count && i < most; ++i)
            if (first[i] == peer) return true;
        return false;
    }
};

/// What a collective did on this rank.
struct receipt {
    std::uint64_t operation_number = 0;
    int contributors = 0;   ///< ranks whose contribution is in the result
    double weight = 0;      ///< sum of their weights
    std::uint32_t age = 0;  ///< age of the oldest contribution, in steps
    int rounds = 0;
    traffic wire{};         ///< traffic of this operation alone
    duration elapsed{};     ///< on the transport's clock
    int detours = 0;        ///< messages that this rank sent by way of another; see `DetouringTopology`
    silent_links silent{};  ///< at the end
};

}}  // namespace rill::RILL_ABI
