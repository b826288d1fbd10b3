#pragma once

#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

namespace rill { inline namespace RILL_ABI {

namespace detail {
inline constexpr message_kind update_kind{"update of a step", 1};
}  // namespace detail

/// An update as bytes, from which `update_in` makes the same bits: for members that keep updates for those who miss
/// them. Values are stored as they are, indices in the shortest coding, or without indices where the update is dense.
template <Element T, IndexType Index>
buffer update_bytes(const stream_view<T, Index>& update) {
    arena memory;
    const coding codes{.indices = update.is_dense() ? index_coding::dense : index_coding::smallest};
    const byte_view frame = coded_frame({.kind = detail::update_kind, .dimension = update.range().end}, update, codes,
                                        random_key{}, memory);
    return {frame.begin(), frame.end()};
}

/// The update that these bytes hold, decoded into `room` where it is not read where it lies. Throws `protocol_error`
/// unless they are one.
template <Element T, IndexType Index>
stream_view<T, Index> update_in(byte_view bytes, frame_scratch<T, Index>& room) {
    frame_reader frames{byte_pieces(bytes)};
    const frame one = frames.next<T, Index>();
    wire::detail::require(one.head.kind == detail::update_kind && frames.done(), "it is no update");
    return content_of(one, room);
}

}}  // namespace rill::RILL_ABI
