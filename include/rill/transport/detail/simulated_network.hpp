#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>

namespace rill::inline RILL_ABI::simulated {

/// What the ranks are connected by: a directed link between every two of them. A message of n bytes starts when its
/// link is free, occupies it for n / bandwidth, and arrives `latency` later (the α-β model); a link keeps the order.
struct network {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;            ///< bytes per second of each directed link; 0: without limit
    duration jitter{};                                  ///< adds to each message's latency, uniform in [0, jitter]
    std::uint64_t seed = 0;                             ///< of the jitter
    std::size_t mailbox_bytes = std::size_t{64} << 20;  ///< bound of what a rank has been handed and not received
    duration poll = nanoseconds(100);  ///< what looking in vain costs, so that a loop that only looks gets on
    std::size_t stack_bytes = std::size_t{512} << 10;  ///< of each activity, reserved but not touched

    friend constexpr bool operator==(const network&, const network&) = default;

    /// How long `bytes` occupy a link, rounded up.
    constexpr duration transfer(std::uint64_t bytes) const { return transfer_time(bytes, bandwidth); }

    /// Latency of message `number` of the link from `source` to `destination`.
    constexpr duration delay(rank_t source, rank_t destination, std::uint64_t number) const {
        if (jitter.ns <= 0) return latency;
        const random_key link =
            random_key{seed}.derive(static_cast<unsigned>(source), static_cast<unsigned>(destination));
        random_sequence of_message(link.derive(number));
        const std::uint64_t extra = of_message.below(static_cast<std::uint64_t>(jitter.ns) + 1);
        return latency + duration(static_cast<std::int64_t>(extra));
    }
};

/// What a run did. Two runs with equal reports went the same way.
struct report {
    duration elapsed{};            ///< virtual time at which the last rank ended
    std::uint64_t events = 0;      ///< arrivals and expired waits
    std::uint64_t messages = 0;    ///< posted
    std::uint64_t bytes = 0;       ///< posted
    std::uint64_t trace_hash = 0;  ///< of all posts and events, in order, with their times

    friend constexpr bool operator==(const report&, const report&) = default;
};

}  // namespace rill::inline RILL_ABI::simulated
