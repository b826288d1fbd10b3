// Checks that all index codings share.
#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void bad_indices(const char* coding,
                                                               std::initializer_list<text_piece> what) {
    throw protocol_error(text_of({coding, " indices: ", text_of(what)}));
}

[[noreturn, gnu::cold, gnu::noinline]] inline void bad_index(const char* coding, std::size_t position,
                                                             std::size_t index, std::size_t lowest, std::size_t end) {
    bad_indices(coding, {"number ", position, " is ", index, ", expected one of [", lowest, ", ", end, ")"});
}

inline void check_count_in_universe(std::size_t count, segment universe) {
    if (count > universe.size())
        throw protocol_error(text_of({count, " indices are announced for ", universe.size(), " coordinates"}));
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
    if (count > room) throw protocol_error(text_of({count, " indices are announced, with room for ", room}));
}

}}}  // namespace rill::RILL_ABI::kernel::detail
