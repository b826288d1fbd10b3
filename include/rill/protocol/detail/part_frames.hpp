// The messages by which a worker and a server exchange a part of a model. Coordinates count from the part's beginning.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/detail/kept_room.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// All entries as a dense stream of its own.
template <Element T>
stream_view<T, std::uint64_t> whole(std::span<const T> values) {
    return {{0, values.size()}, values};
}

/// A message that will hold these values of a part and what travels with them. A push and an answer of as many values
/// have the same room, so that each can be made in the memory of the other (`buffer_shelf`).
template <Element T>
buffer room_for_part(std::span<const T> values) {
    constexpr std::size_t beside = 512;  // headers, and the rounds of some pushes
    return kept_room(values.size_bytes() + beside);
}

/// A message that says what its header says, and nothing else, made in `message`.
inline buffer empty_frame(const wire::header& head, buffer message = kept_room(0)) {
    append_frame(message, head, whole(std::span<const std::int32_t>()));
    return message;
}

/// Whether `keys` ascend strictly and lie below `dimension`.
template <IndexType Index>
bool are_keys(std::span<const Index> keys, std::size_t dimension) {
    const auto falls = std::adjacent_find(keys.begin(), keys.end(), [](Index a, Index b) { return a >= b; });
    return falls == keys.end() && (keys.empty() || keys.back() < dimension);
}

/// The places of the keys that lie in a part.
template <IndexType Index>
segment places_of(std::span<const Index> keys, segment part) {
    const auto place = [&](std::size_t coordinate) {
        const auto at = std::lower_bound(keys.begin(), keys.end(), coordinate);
        return static_cast<std::size_t>(at - keys.begin());
    };
    return {place(part.begin), place(part.end)};
}

/// The keys that lie in a part, as integers of their width.
template <IndexType Index>
buffer keys_frame(const wire::header& head, std::span<const Index> keys, segment part) {
    const segment places = places_of(keys, part);
    std::vector<std::make_signed_t<Index>> own;
    own.reserve(places.size());
    for (const Index key : keys.subspan(places.begin, places.size()))
        own.push_back(static_cast<std::make_signed_t<Index>>(key - part.begin));
    buffer message;
    append_frame(message, head, whole(std::span<const std::make_signed_t<Index>>(own)));
    return message;
}

/// The entries of a part of a stream.
template <Element T, IndexType Index>
buffer part_frame(const wire::header& head, const stream_view<T, Index>& part) {
    if (part.is_dense()) {
        buffer message = room_for_part(part.values());
        append_frame(message, head, whole(part.values()));
        return message;
    }
    buffer message;
    std::vector<Index> own(part.indices().begin(), part.indices().end());
    for (Index& index : own) index -= static_cast<Index>(part.range().begin);
    append_frame(message, head,
                 stream_view<T, Index>{{0, part.range().size()}, sparse_view<T, Index>{own, part.values()}});
    return message;
}

/// What a frame holds that must be raw, read where it lies.
template <Element T, IndexType Index>
stream_view<T, Index> raw_content(const frame& of) {
    frame_scratch<T, Index> unused;
    return content_of<coding_set{.rounds = false, .indices = index_coding::raw}>(of, unused);
}
/// The next frame of a message, which must be dense.
template <Element T>
std::span<const T> next_values(frame_reader& frames) {
    const stream_view<T, std::uint64_t> content = raw_content<T, std::uint64_t>(frames.next<T, std::uint64_t>());
    wire::detail::require(content.is_dense(), "it is not dense");
    return content.values();
}

}}}  // namespace rill::RILL_ABI::detail
