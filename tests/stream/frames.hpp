// Helpers that the tests of frames share.
#pragma once

#include <rill/stream/frame.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rill::stream_tests {

inline wire::header frame_header_of(std::size_t dimension) {
    return {.kind = operation::all_reduce,
            .context = 3,
            .number = 4,
            .call = 5,
            .dimension = dimension,
            .weight = 1,
            .contributors = 1};
}

/// Frames one after another, each at a multiple of `frame_alignment`, in an allocation of exactly their size.
inline buffer joined(const std::vector<byte_pieces>& frames) {
    buffer message;
    for (const byte_pieces& pieces : frames) {
        message.resize((message.size() + frame_alignment - 1) / frame_alignment * frame_alignment, std::byte{0});
        for (byte_view piece : pieces) message.append(piece.begin(), piece.end());
    }
    return buffer(message.begin(), message.end());
}

}  // namespace rill::stream_tests
