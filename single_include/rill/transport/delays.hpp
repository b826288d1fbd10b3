// rill 0.1.0: <rill/transport/delays.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_DELAYS_HPP
#define RILL_SINGLE_TRANSPORT_DELAYS_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/delays.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/delays.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <cstdint>

// ===== rill/transport/delays.hpp

namespace rill::inline RILL_ABI {

/// What a message costs on its way (the α-β model): `bytes / bandwidth` on the link of its sender, then `latency`.
struct delays {
    duration latency = microseconds(50);
    std::uint64_t bandwidth = 125'000'000;  ///< bytes per second that a rank can send; 0: without limit

    constexpr duration transfer(std::uint64_t bytes) const { return transfer_time(bytes, bandwidth); }
    friend constexpr bool operator==(const delays&, const delays&) = default;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_DELAYS_HPP
