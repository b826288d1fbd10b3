// Checks that all index codings share.
#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

[[noreturn]] inline void bad_indices(const char* coding, const std::string& what) {
    throw protocol_error(std::string(coding) + " indices: " + what);
}

[[noreturn]] inline void bad_index(const char* coding, std::size_t position, std::size_t index, std::size_t lowest,
                                   std::size_t end) {
    bad_indices(coding, "number " + std::to_string(position) + " is " + std::to_string(index) + ", expected one of [" +
                            std::to_string(lowest) + ", " + std::to_string(end) + ")");
}

inline void check_count_in_universe(std::size_t count, segment universe) {
    if (count > universe.size())
        throw protocol_error(std::to_string(count) + " indices are announced for " + std::to_string(universe.size()) +
                             " coordinates");
}

template <IndexType Index>
void expect_encodable([[maybe_unused]] std::span<const Index> indices, [[maybe_unused]] segment universe) {
    RILL_EXPECTS(indices.empty() || (universe.contains(static_cast<std::size_t>(indices.front())) &&
                                     universe.contains(static_cast<std::size_t>(indices.back()))),
                 "index coding: an index lies outside of the universe");
    RILL_EXPECTS_DEBUG(
        std::adjacent_find(indices.begin(), indices.end(), [](Index a, Index b) { return a >= b; }) == indices.end(),
        "index coding: the indices do not ascend");
}

/// `count` comes from a message. Hence this check of the room is always made; it is no contract that can be switched
/// off.
template <IndexType Index>
void expect_decodable(std::size_t count, [[maybe_unused]] segment universe, std::size_t room) {
    RILL_EXPECTS(universe.empty() || universe.end - 1 <= static_cast<Index>(-1),
                 "index coding: the index type cannot number the universe");
    if (count > room)
        throw protocol_error(std::to_string(count) + " indices are announced, with room for " + std::to_string(room));
}

}}}  // namespace rill::RILL_ABI::kernel::detail
