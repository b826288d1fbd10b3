#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// What a message costs on its way (the α-β model): `bytes / bandwidth` on the link of its sender, then `latency`.
struct delays {
    duration latency = microseconds(50);
    std::uint64_t bandwidth = 125'000'000;  ///< bytes per second that a rank can send; 0: without limit

    friend constexpr bool operator==(const delays&, const delays&) = default;
};

}}  // namespace rill::RILL_ABI
