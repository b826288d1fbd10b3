#pragma once

#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/stream/frame.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Joins several frames into one message, copied into `memory`.
inline byte_view join_frames(std::span<const byte_pieces> frames, arena& memory) {
    std::size_t size = 0;
    for (const byte_pieces& frame : frames) size = next_frame_at(size) + frame.size_bytes();
    const byte_span whole = memory.take(size);
    std::byte* at = whole.data();
    for (const byte_pieces& frame : frames) {
        const auto written = static_cast<std::size_t>(at - whole.data());
        const std::size_t gap = next_frame_at(written) - written;
        std::memset(at, 0, gap);
        at += gap;
        for (const byte_view piece : frame) {
            if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
            at += piece.size();
        }
    }
    return whole;
}

}}  // namespace rill::RILL_ABI
