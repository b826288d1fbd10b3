#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// Which part, or which rank's contribution, a frame carries. If the frame's range does not identify it, it is added to
/// `wire::header::call`. So the receiver notices if a message was lost or repeated and another one takes its place.
class frame_place {
  public:
    /// A part: identified by the frame's range, and by its number if that range is empty.
    static constexpr frame_place of_part(int part) { return {part, when::empty}; }
    /// A rank's contribution: identified by its number alone, because all frames cover the same range.
    static constexpr frame_place of_rank(rank_t rank) { return {rank, when::always}; }
    /// A later frame of a message: identified by its range; not checked if that is empty.
    static constexpr frame_place unknown() { return {0, when::never}; }

    /// The number of places that a call can tell apart; larger numbers wrap around.
    static constexpr std::uint32_t many = 1U << 16U;

    /// The value of `wire::header::call` for a frame over `range`; `call` is the hash of the call.
    constexpr std::uint32_t in(std::uint32_t call, segment range) const {
        return call + (counts_for(range) ? number_ % many : 0);
    }
    /// Whether a received frame is for this place; `call` is the hash of the call.
    constexpr bool is_place_of(const wire::header& head, std::uint32_t call) const {
        return in(call, head.range) == head.call || (when_ == when::never && head.range.empty());
    }
    constexpr std::uint32_t number() const { return number_; }

  private:
    enum class when : unsigned char { empty, always, never };

    constexpr frame_place(int number, when counts) : number_(static_cast<std::uint32_t>(number)), when_(counts) {}
    constexpr bool counts_for(segment range) const {
        return when_ == when::always || (when_ == when::empty && range.empty());
    }

    std::uint32_t number_;
    when when_;
};

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
