#pragma once

#include <rill/core/config.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// Which members of a view may decide on the next one. See docs/elastic.md for what each does not promise.
enum class quorum : std::uint8_t {
    /// More than half of the view, or half with its lowest rank. Two such sets have a member in common, so that a
    /// network that falls apart goes on in one part at most.
    majority,
    /// A majority, or any members to each of which the transport has said that all others have ended. Each of them
    /// fences those lives before it decides. Where such news are false, a network that falls apart goes on in parts.
    refused,
    /// A majority, or any members that have each lost all others. A network that falls apart goes on in parts.
    reachable
};

}}  // namespace rill::RILL_ABI
