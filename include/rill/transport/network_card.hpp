#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// The limits of a rank's network card, in bytes per second for each direction. 0 means no limit: any number of
/// messages pass at a time. A limited direction passes whole messages one after the other, first come, first served.
struct network_card {
    std::uint64_t send = 0;
    std::uint64_t receive = 0;

    /// Sends one message and receives one message at a time, each at `bandwidth`.
    static constexpr network_card full_duplex(std::uint64_t bandwidth) {
        return {.send = bandwidth, .receive = bandwidth};
    }
    /// Receives one message at a time and sends any number: the master's card in CodedReduce (section 2).
    static constexpr network_card single_receive(std::uint64_t bandwidth) { return {.send = 0, .receive = bandwidth}; }

    friend constexpr bool operator==(const network_card&, const network_card&) = default;
};

/// Says what card a rank has: `model(rank)`. Any callable with this signature models it.
template <class M>
concept CardModel = requires(const M& model, rank_t rank) {
    { model(rank) } -> std::convertible_to<network_card>;
};

}}  // namespace rill::RILL_ABI
