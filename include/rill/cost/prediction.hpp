#pragma once

#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// What a collective is expected to cost.
struct prediction {
    duration elapsed{};  ///< from the first start until the last rank has received everything
    int rounds = 0;
    std::vector<duration> ends{};        ///< when each rank ends, on the clock of `starts`
    std::vector<rill::traffic> ranks{};  ///< traffic of each rank, headers included

    std::uint64_t messages() const {
        std::uint64_t sum = 0;
        for (const auto& each : ranks) sum += each.messages_sent;
        return sum;
    }
    std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (const auto& each : ranks) sum += each.bytes_sent;
        return sum;
    }
    /// The bytes sent by the rank that sends most.
    std::uint64_t busiest_bytes() const {
        std::uint64_t most = 0;
        for (const auto& each : ranks) most = std::max(most, each.bytes_sent);
        return most;
    }
    friend bool operator==(const prediction&, const prediction&) = default;
};

}}}  // namespace rill::RILL_ABI::cost
