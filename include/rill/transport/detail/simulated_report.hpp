#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// The traffic of one directed link.
struct link_report {
    rank_t source = no_rank;
    rank_t receiver = no_rank;
    std::uint64_t messages = 0;  ///< posted, including those that were lost
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;          ///< by faults, or because the receiver was dead
    std::uint64_t duplicated = 0;    ///< by faults; the copies are not counted as posted
    std::uint64_t held = 0;          ///< held back by faults, so that messages of other senders overtake them
    std::uint64_t control_lost = 0;  ///< dispatches of travelling control that faults have lost; each is repeated

    friend constexpr bool operator==(const link_report&, const link_report&) = default;
};

/// How a rank spent its time.
struct rank_report {
    duration computing{};  ///< in `compute`
    duration waiting{};    ///< waiting for other ranks or activities, summed over its activities
    duration ended{};      ///< when its body returned, since the start of the run
    int lives = 1;         ///< one more than its restarts; 0 for a seat that stayed free

    friend constexpr bool operator==(const rank_report&, const rank_report&) = default;
};

/// The result of a run. Runs with equal reports took the same course.
struct report {
    duration elapsed{};            ///< virtual time at which the last rank ended
    std::uint64_t events = 0;      ///< arrivals (also of travelling control), expired waits and faults
    std::uint64_t messages = 0;    ///< posted
    std::uint64_t bytes = 0;       ///< posted
    std::uint64_t trace_hash = 0;  ///< of all posts and events, in order, with their times
    std::vector<rank_report> ranks{};
    std::vector<link_report> links{};  ///< the links that were used, ascending in source, then receiver

    friend bool operator==(const report&, const report&) = default;
};

}}}  // namespace rill::RILL_ABI::simulated
