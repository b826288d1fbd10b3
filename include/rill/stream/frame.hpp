#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/stream/detail/payload.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// The alignment, in bytes, of each frame in a message of several frames.
inline constexpr std::size_t frame_alignment = 8;

/// Where the next frame of a message begins after `size` bytes of frames.
template <std::unsigned_integral Size>
constexpr Size next_frame_at(Size size) {
    return (size + frame_alignment - 1) / frame_alignment * frame_alignment;
}

namespace detail {
/// Writes the header of a frame, and puts its pieces in order.
[[gnu::noinline]] inline byte_pieces framed(wire::header& head, stream_types types, byte_view indices, byte_view values,
                                            std::byte* block) {
    head.index_length = indices.size();
    wire::encode(head, block);
    byte_pieces pieces{byte_view(block, wire::header_bytes)};
    const bool values_first = types.values_first(head.codes);
    if (const byte_view first = values_first ? values : indices; !first.empty()) pieces.push(first);
    if (const byte_view second = values_first ? indices : values; !second.empty()) pieces.push(second);
    return pieces;
}
}  // namespace detail

/// Makes a frame of `view` without copying it. The header is written to `block` (`wire::header_bytes`); the other
/// pieces are the stream's own arrays. `head` supplies what the stream does not know (context, operation, weight, …).
template <Element T, IndexType Index>
byte_pieces view_frame(wire::header head, const stream_view<T, Index>& view, std::byte* block) {
    detail::describe(head, view);
    head.codes = {.indices = view.is_dense() ? index_coding::dense : index_coding::raw};
    return detail::framed(head, detail::stream_types::of<T, Index>(), std::as_bytes(view.indices()),
                          std::as_bytes(view.values()), block);
}

namespace detail {
/// Appends a frame of `view`, raw, to a message that consists of whole frames.
template <Element T, IndexType Index>
void append_frame(buffer& message, wire::header head, const stream_view<T, Index>& view) {
    wire::header_block block;
    head.dimension = view.range().end;
    const byte_pieces frame = view_frame(head, view, block.data());
    const std::size_t at = next_frame_at(message.size());
    message.reserve(at + frame.size_bytes());
    message.resize(at, std::byte{0});
    for (const byte_view piece : frame) message.append(piece.begin(), piece.end());
}
}  // namespace detail

/// Makes a frame of `view` in the given coding, in bytes taken from `memory`. Random rounding draws from `key`. Lossy
/// codings throw `invalid_value`, which names the coordinate, if an entry is not finite, or too large for bfloat16;
/// `whole_rows`, if a row is not whole.
template <coding_set Among = coding_set{}, Element T, IndexType Index, Executor Exec = serial>
byte_view coded_frame(wire::header head, const stream_view<T, Index>& view, const coding& codes, random_key key,
                      arena& memory, const Exec& executor = {}) {
    detail::describe(head, view);
    head.codes = detail::resolve<Among>(codes, view);
    if constexpr (Among.rounds)
        if (!head.codes.is_lossless()) detail::require_roundable(view, head.codes, executor);
    const std::size_t index_length = detail::index_length<Among>(head.codes, view.indices(), view.range());
    const std::size_t value_length = detail::value_length<T>(head.codes, view.count());
    head.index_length = index_length;
    const byte_span out = memory.take(wire::header_bytes + index_length + value_length);
    wire::encode(head, out.data());
    const byte_span payload = out.subspan(wire::header_bytes);
    const bool values_first = detail::stream_types::of<T, Index>().values_first(head.codes);
    detail::encode_values<Among>(view.values(), head.codes, key, head.range.begin,
                                 payload.subspan(values_first ? 0 : index_length, value_length), executor);
    if (!view.is_dense())
        kernel::encode_indices<Index, Among>(head.codes.indices, view.indices(), view.range(),
                                             payload.subspan(values_first ? value_length : 0, index_length),
                                             head.codes.row);
    return out;
}

/// A received frame: a valid header, and the bytes of its payload, not yet validated.
struct frame {
    wire::header head;
    byte_view indices;
    byte_view values;
    byte_pieces bytes;  ///< the whole frame, for forwarding verbatim

    bool is_dense() const { return head.codes.indices == index_coding::dense; }
    /// Lets `content_of` decode values in a coding of the user's: this rank's, which the frame's sender has too.
    frame with(const own_coding& own) const {
        frame f = *this;
        f.head.codes.own = own;
        return f;
    }
};

/// Reads the frames of a message one by one. Bytes that are not valid frames throw `protocol_error`.
class frame_reader {
  public:
    explicit frame_reader(const byte_pieces& message) : pieces_(message) { skip_empty(); }

    bool done() const { return piece_ == pieces_.count(); }

    /// The header of the next frame, without reading past it.
    [[gnu::noinline]] wire::header peek() const {
        return wire::decode(frame_reader(*this).take(wire::header_bytes).data());
    }

    template <Element T, IndexType Index>
    frame next() {
        return next(detail::stream_types::of<T, Index>());
    }

  private:
    [[gnu::noinline]] frame next(detail::stream_types types) {
        const byte_view block = take(wire::header_bytes);
        frame f{wire::decode(block.data()), {}, {}, block};
        types.require(f.head);
        wire::detail::require(f.head.count <= 8 * remaining(), "truncated");  // a value takes at least one bit
        const std::size_t value_length = detail::value_length(f.head, types.element_bytes());
        const bool values_first = types.values_first(f.head.codes);
        if (values_first) f.bytes.push(f.values = take(value_length));
        f.bytes.push(f.indices = take(f.head.index_length));
        if (!values_first) f.bytes.push(f.values = take(value_length));
        skip_padding(f.bytes.size_bytes());
        return f;
    }

    std::size_t remaining() const {
        std::size_t sum = 0;
        for (std::size_t i = piece_; i < pieces_.count(); ++i) sum += pieces_[i].size();
        return sum - used_;
    }

    [[gnu::noinline]] byte_view take(std::uint64_t size) {
        if (size == 0) return {};
        wire::detail::require(!done() && size <= pieces_[piece_].size() - used_, "truncated");
        const byte_view taken = pieces_[piece_].subspan(used_, static_cast<std::size_t>(size));
        used_ += static_cast<std::size_t>(size);
        skip_empty();
        return taken;
    }

    void skip_padding(std::size_t frame_size) {
        if (done()) return;
        for (std::byte b : take((frame_alignment - frame_size % frame_alignment) % frame_alignment))
            wire::detail::require(b == std::byte{0}, "padding is not zero");
        wire::detail::require(!done(), "bytes behind the last frame");
    }

    void skip_empty() {
        while (piece_ < pieces_.count() && used_ == pieces_[piece_].size()) {
            ++piece_;
            used_ = 0;
        }
    }

    byte_pieces pieces_;
    std::size_t piece_ = 0;
    std::size_t used_ = 0;
};

/// Scratch memory into which coded frames are decoded; reused.
template <Element T, IndexType Index>
struct frame_scratch {
    aligned_vector<Index> indices;
    aligned_vector<T> values;
};

/// Room for what is to be decoded of a frame. The bytes of its values, which have come, bound the number of entries.
template <Element T, IndexType Index>
[[gnu::noinline]] stream_room<T, Index> room_for(const frame& f, frame_scratch<T, Index>& scratch) {
    const auto count = static_cast<std::size_t>(f.head.count);
    scratch.values.resize(f.head.codes.values == value_coding::raw ? 0 : count);
    scratch.indices.resize(f.head.codes.is_view() || f.is_dense() ? 0 : count);
    return {span_of(scratch.indices), span_of(scratch.values)};
}

/// The content of a frame: a view of the frame's own bytes where they are raw (they must outlive it), otherwise decoded
/// into `room`, which has as many entries as the frame. It is validated completely: indices are strictly ascending and
/// in range, scales are finite. Throws `protocol_error`. Values in a coding of the user's need `frame::with`.
template <coding_set Among = coding_set{}, Element T, IndexType Index, Executor Exec = serial>
stream_view<T, Index> decode_into(const stream_room<T, Index>& room, const frame& f, const Exec& executor = {}) {
    const std::span<const T> values = detail::decode_values<Among>(f.head, f.values, room.values, executor);
    if (f.is_dense()) return {f.head.range, values};
    return {f.head.range,
            sparse_view<T, Index>{detail::decode_indices<Among>(f.head, f.indices, room.indices), values}};
}

/// The same, decoded into `scratch`.
template <coding_set Among = coding_set{}, Element T, IndexType Index, Executor Exec = serial>
stream_view<T, Index> content_of(const frame& f, frame_scratch<T, Index>& scratch, const Exec& executor = {}) {
    return decode_into<Among>(room_for(f, scratch), f, executor);
}

/// How a state writes and reads frames whose codings are known only when it runs. The caller chooses the functions, so
/// that it compiles only those of its codings.
template <Element T, IndexType Index, Executor Exec>
struct frame_coder {
    byte_view (*encode)(const wire::header& head, const stream_view<T, Index>& view, const coding& codes,
                        random_key key, arena& memory, const Exec& executor);
    stream_view<T, Index> (*decode)(const frame& f, const stream_room<T, Index>& room, const Exec& executor);
    /// Throws `invalid_value` if an entry of the input cannot be rounded as contributions or finished parts are, or if
    /// one of the codings needs whole rows and a row is not whole.
    void (*require_input)(const stream_view<T, Index>& view, const stream_codings& codings, const Exec& executor);
};

namespace detail {
template <coding_set Among, Element T, IndexType Index, Executor Exec>
byte_view encode_frame(const wire::header& head, const stream_view<T, Index>& view, const coding& codes, random_key key,
                       arena& memory, const Exec& executor) {
    if constexpr (Among.has_only_views())
        return {};  // not called: every coding is a view
    else
        return coded_frame<Among>(head, view, codes, key, memory, executor);
}
template <coding_set Among, Element T, IndexType Index, Executor Exec>
stream_view<T, Index> decode_frame(const frame& f, const stream_room<T, Index>& room, const Exec& executor) {
    return decode_into<Among>(room, f, executor);
}
template <coding_set Among, Element T, IndexType Index, Executor Exec>
void require_input([[maybe_unused]] const stream_view<T, Index>& view, [[maybe_unused]] const stream_codings& codings,
                   [[maybe_unused]] const Exec& executor) {
    if constexpr (Among.rounds)
        for (const coding* each : {&codings.copy, &codings.contribution})
            if (!each->is_lossless() &&
                (each == &codings.copy || each->values != codings.copy.values))  // once for both
                require_roundable(view, *each, executor);
    if constexpr (Among.has(index_coding::whole_rows))
        for (const coding* each : {&codings.contribution, &codings.partial, &codings.copy})
            require_whole_rows(view, *each);
}
}  // namespace detail

/// The functions for frames whose codings are `Among` these.
template <coding_set Among, Element T, IndexType Index, Executor Exec>
inline constexpr frame_coder<T, Index, Exec> coder_of{detail::encode_frame<Among, T, Index, Exec>,
                                                      detail::decode_frame<Among, T, Index, Exec>,
                                                      detail::require_input<Among, T, Index, Exec>};

}}  // namespace rill::RILL_ABI
