#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// Which members of a view may decide on the next one. See docs/elastic.md for what each does not promise.
enum class quorum : std::uint8_t {
    /// More than half of the view, or exactly half with its lowest rank. Two such sets have a member in common. So in
    /// a network that falls apart, at most one part goes on.
    majority,
    /// A majority, or any members to each of which the transport has told that all others have ended. Each of them
    /// first shuts out what these may still send (`fence`). If such news is false, both parts of a divided network may
    /// go on.
    refused,
    /// A majority, or any members that have each lost all others: these have ended, or are silent. Both parts of a
    /// divided network go on.
    reachable
};

}}  // namespace rill::RILL_ABI
