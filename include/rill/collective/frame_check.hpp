#pragma once

#include <rill/collective/detail/frame_place.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/stream/frame.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// The header fields that all frames of the current call share. A call without data sends empty frames of int32.
template <class Net>
wire::header frame_header_of(const exchange<Net>& call) {
    const call_signature& signature = call.signature();
    const wire::header head{
        .element = signature.element == element_type::none ? element_type::int32 : signature.element,
        .index_bytes = signature.index_bytes == 0 ? std::uint8_t{4} : signature.index_bytes,
        .call = signature.hash(),
        .dimension = signature.dimension};
    return call.of().stamped(head, signature.kind, signature.number);
}
}  // namespace detail

/// The header of the next frame of a message from `source`. If it belongs to another call, every rank learns which rank
/// made the odd call. `place`: the part or the rank that the frame must be of.
template <class Net>
[[gnu::noinline]] wire::header next_header(const exchange<Net>& call, rank_t source, const frame_reader& reader,
                                           detail::frame_place place) {
    const wire::header head = read_from(call, source, [&] {
        const wire::header next = reader.peek();
        call.of().require_epoch(next);
        return next;
    });
    const std::uint32_t hash = call.signature().hash(), given = head.call - hash;
    if (head.context != call.context() || given >= detail::frame_place::many) call.disagree(source);
    if (!place.is_place_of(head, hash))
        call.refuse(source, {"sent part ", given, " where part ", place.number(), " was due"});
    const auto ranks = static_cast<std::uint32_t>(call.net().size());
    if (head.contributors > ranks)
        call.refuse(source, {"claims ", head.contributors, " contributors among ", ranks, " ranks"});
    return head;
}

/// The next frame of a message from `source`, whose header is checked as by `next_header`.
template <Element T, IndexType Index, class Net>
frame next_frame(const exchange<Net>& call, rank_t source, frame_reader& reader,
                 detail::frame_place place = detail::frame_place::of_part(0)) {
    next_header(call, source, reader, place);
    return read_from(call, source, [&] { return reader.next<T, Index>(); });
}

/// Ends the operation with `source` as the culprit unless a frame covers the range that is due.
template <class Net>
void expect_range(const exchange<Net>& call, rank_t source, segment given, segment due) {
    if (given != due)
        call.refuse(source,
                    {"sent [", given.begin, ", ", given.end, ") where [", due.begin, ", ", due.end, ") was due"});
}

/// Ends the operation with `source` as the culprit if a message has more frames than were due.
template <class Net>
void expect_end(const exchange<Net>& call, rank_t source, const frame_reader& reader) {
    if (!reader.done()) call.refuse(source, {"sent more frames than were due"});
}

/// The only frame of a message, which must cover `due`.
template <Element T, IndexType Index, class Net>
frame only_frame(exchange<Net>& call, rank_t source, const byte_pieces& message, segment due,
                 detail::frame_place place = detail::frame_place::of_part(0)) {
    frame_reader reader(message);
    const frame f = next_frame<T, Index>(call, source, reader, place);
    expect_range(call, source, f.head.range, due);
    expect_end(call, source, reader);
    return f;
}

}}  // namespace rill::RILL_ABI
