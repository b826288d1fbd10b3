// rill 0.1.0: <rill/transport/network_card.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_NETWORK_CARD_HPP
#define RILL_SINGLE_TRANSPORT_NETWORK_CARD_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/network_card.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/network_card.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <concepts>
#include <cstdint>

// ===== rill/transport/network_card.hpp

namespace rill::inline RILL_ABI {

/// What a rank's network card can do at once, in bytes per second; 0: without limit, any number of messages at a time.
/// Messages pass a limited side one after the other, whole: first come, first served.
struct network_card {
    std::uint64_t send = 0;
    std::uint64_t receive = 0;

    /// Sends one message and receives one message at a time, each at `bandwidth`.
    static constexpr network_card full_duplex(std::uint64_t bandwidth) {
        return {.send = bandwidth, .receive = bandwidth};
    }
    /// Takes from one sender at a time, and sends to any number: the master's card in CodedReduce (section 2).
    static constexpr network_card single_receive(std::uint64_t bandwidth) { return {.send = 0, .receive = bandwidth}; }

    friend constexpr bool operator==(const network_card&, const network_card&) = default;
};

/// Says what card a rank has. Any function of that shape is one.
template <class M>
concept CardModel = requires(const M& model, rank_t rank) {
    { model(rank) } -> std::convertible_to<network_card>;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_NETWORK_CARD_HPP
