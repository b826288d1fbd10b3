#pragma once

#include <rill/core/time.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstdint>

namespace plan {

/// Ranks behind one switch that is no bottleneck: each has a card, which sends a message and receives one at a time.
/// Seconds, and bytes per second; a bandwidth of 0 takes no time.
inline rill::simulated::network network_of(double latency, double bandwidth) {
    const auto card = rill::network_card::full_duplex(static_cast<std::uint64_t>(std::llround(bandwidth)));
    return {.latency = rill::nanoseconds(std::llround(latency * 1e9)), .bandwidth = 0, .cards = [card](rill::rank_t) {
                return card;
            }};
}

}  // namespace plan
