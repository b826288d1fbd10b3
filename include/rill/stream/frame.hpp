#pragma once

#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/payload.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill::inline RILL_ABI {

/// A received frame: a valid header, and the bytes of its payload, not yet looked at.
struct frame {
    wire::header head;
    byte_view indices;
    byte_view values;
    byte_pieces bytes;  ///< all of it, for forwarding verbatim
};

/// Frames begin at multiples of this in a message of several.
inline constexpr std::size_t frame_alignment = 8;

/// A frame of `view` without copying it: the header is written to `block` (`wire::header_bytes`), the rest are the
/// stream's own arrays, the wider first, so that both are aligned when a transport joins them. `head` supplies what a
/// stream does not know (context, operation, weight, …).
template <Element T, IndexType Index>
byte_pieces view_frame(wire::header head, const stream_view<T, Index>& view, std::byte* block) {
    detail::describe(head, view);
    head.codes = {.indices = view.is_dense() ? index_coding::dense : index_coding::raw};
    head.index_length = std::as_bytes(view.indices()).size();
    wire::encode(head, block);
    byte_pieces pieces{byte_view(block, wire::header_bytes)};
    const byte_view indices = std::as_bytes(view.indices());
    const byte_view values = std::as_bytes(view.values());
    const bool values_first = detail::values_first<T, Index>(head.codes);
    if (const byte_view first = values_first ? values : indices; !first.empty()) pieces.push(first);
    if (const byte_view second = values_first ? indices : values; !second.empty()) pieces.push(second);
    return pieces;
}

/// A frame of `view` in the given coding, written into `memory`; random rounding draws from `key`. Lossy codings throw
/// `invalid_value` where an entry is not finite.
template <Element T, IndexType Index>
byte_view coded_frame(wire::header head, const stream_view<T, Index>& view, coding codes, random_key key,
                      arena& memory) {
    detail::describe(head, view);
    head.codes = detail::settle(codes, view);
    const byte_span out = memory.take(wire::header_bytes + detail::most_payload_bytes(view, head.codes));
    byte_span rest = out.subspan(wire::header_bytes);
    std::size_t index_length = 0;
    std::size_t value_length = 0;
    if (detail::values_first<T, Index>(head.codes)) {
        value_length = detail::encode_values(view.values(), head, key, rest);
        index_length = detail::encode_indices(view, head.codes.indices, rest.subspan(value_length));
    } else {
        index_length = detail::encode_indices(view, head.codes.indices, rest);
        value_length = detail::encode_values(view.values(), head, key, rest.subspan(index_length));
    }
    head.index_length = index_length;
    wire::encode(head, out.data());
    const std::size_t size = wire::header_bytes + index_length + value_length;
    memory.shrink_last(size);
    return out.first(size);
}

/// Reads the frames of a message one by one. Any bytes give valid frames or throw `protocol_error`.
class frame_reader {
  public:
    explicit frame_reader(const byte_pieces& message) : pieces_(message) { skip_empty(); }

    bool done() const { return piece_ == pieces_.count(); }

    /// The header of the next frame, which stays the next.
    wire::header peek() const { return wire::decode(frame_reader(*this).take(wire::header_bytes).data()); }

    template <Element T, IndexType Index>
    frame next() {
        const byte_view block = take(wire::header_bytes);
        frame f{wire::decode(block.data()), {}, {}, block};
        detail::require_types<T, Index>(f.head);
        const std::size_t value_length = detail::value_length<T>(f.head, remaining());
        if (detail::values_first<T, Index>(f.head.codes)) {
            f.bytes.push(f.values = take(value_length));
            f.bytes.push(f.indices = take(f.head.index_length));
        } else {
            f.bytes.push(f.indices = take(f.head.index_length));
            f.bytes.push(f.values = take(value_length));
        }
        skip_padding(wire::header_bytes + value_length + f.head.index_length);
        return f;
    }

  private:
    std::size_t remaining() const {
        std::size_t sum = 0;
        for (std::size_t i = piece_; i < pieces_.count(); ++i) sum += pieces_[i].size();
        return sum - used_;
    }

    byte_view take(std::uint64_t size) {
        if (size == 0) return {};
        if (done() || size > pieces_[piece_].size() - used_) throw protocol_error("invalid frame: truncated");
        const byte_view taken = pieces_[piece_].subspan(used_, static_cast<std::size_t>(size));
        used_ += static_cast<std::size_t>(size);
        skip_empty();
        return taken;
    }

    void skip_padding(std::size_t frame_size) {
        if (done()) return;
        const std::size_t padding = (frame_alignment - frame_size % frame_alignment) % frame_alignment;
        for (std::byte b : take(padding))
            if (b != std::byte{0}) throw protocol_error("invalid frame: padding is not zero");
        if (done() && padding != 0) throw protocol_error("invalid frame: padding behind the last frame");
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

/// The content of a frame: a view of its bytes where it is raw (the bytes must outlive it), else decoded into
/// `decoded`. Validated completely: indices are strictly ascending and in range, scales are finite. Throws
/// `protocol_error`.
template <Element T, IndexType Index>
stream_view<T, Index> content_of(const frame& f, stream<T, Index>& decoded) {
    const bool view_indices = f.head.codes.indices == index_coding::dense || f.head.codes.indices == index_coding::raw;
    if (view_indices && f.head.codes.values == value_coding::raw)
        return detail::view_of<T, Index>(f.head, f.indices, f.values);
    detail::decode(f.head, f.indices, f.values, decoded);
    return decoded.view();
}

}  // namespace rill::inline RILL_ABI
