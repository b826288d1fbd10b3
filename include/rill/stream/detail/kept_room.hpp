#pragma once

#include <rill/core/aligned_vector.hpp>
#include <rill/core/buffer_shelf.hpp>
#include <rill/core/config.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Memory for a message that the shelf keeps however short the message is: where ranks receive as many as they send.
/// `bytes`: at least those behind its header.
inline buffer kept_room(std::size_t bytes) {
    buffer message;
    message.reserve(std::max(bytes + wire::header_bytes, buffer_shelf::least));
    return message;
}

}}}  // namespace rill::RILL_ABI::detail
