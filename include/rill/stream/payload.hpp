// The payload of a frame: indices and values in their codings. A frame is read and written through stream/frame.hpp.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/coding.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rill::inline RILL_ABI::detail {

/// Fills in what a header says about a stream.
template <Element T, IndexType Index>
void describe(wire::header& head, const stream_view<T, Index>& view) {
    head.element = element_type_of<T>;
    head.index_bytes = sizeof(Index);
    head.range = view.range();
    head.count = view.count();
}

/// Whether the values precede the indices: the wider array first, so that both are aligned.
template <Element T, IndexType Index>
constexpr bool values_first(const coding& codes) {
    return codes.values == value_coding::raw && sizeof(T) >= sizeof(Index);
}

template <Element T, IndexType Index>
void require_types(const wire::header& head) {
    wire::detail::require(head.element == element_type_of<T>, "another element type than was due");
    wire::detail::require(head.index_bytes == sizeof(Index), "another index width than was due");
}

template <class T>
std::span<const T> elements_of(byte_view bytes) {
    wire::detail::require(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0, "misaligned");
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <IndexType Index>
void require_ascending(std::span<const Index> indices, segment range) {
    if (indices.empty()) return;
    wire::detail::require(range.begin <= indices.front() && indices.back() < range.end, "index outside the range");
    bool ascending = true;
    for (std::size_t i = 1; i < indices.size(); ++i) ascending = ascending && indices[i - 1] < indices[i];
    wire::detail::require(ascending, "indices are not ascending");
}

/// The content of a frame in raw coding, as a view of its bytes.
template <Element T, IndexType Index>
stream_view<T, Index> view_of(const wire::header& head, byte_view index_bytes, byte_view value_bytes) {
    const std::span<const T> values = elements_of<T>(value_bytes);
    if (head.codes.indices == index_coding::dense) return {head.range, values};
    wire::detail::require(index_bytes.size() == values.size() * sizeof(Index), "as many indices as values are due");
    const std::span<const Index> indices = elements_of<Index>(index_bytes);
    require_ascending(indices, head.range);
    return {head.range, sparse_view<T, Index>{indices, values}};
}

/// The bytes of the coded values, at most `available`.
template <Element T>
std::size_t value_length(const wire::header& head, std::size_t available) {
    wire::detail::require(head.count <= available, "truncated");
    const auto count = static_cast<std::size_t>(head.count);
    return count * sizeof(T);
}

template <Element T, IndexType Index>
void decode(const wire::header&, byte_view, byte_view, stream<T, Index>&) {
    throw protocol_error("later");
}
template <Element T, IndexType Index>
coding settle(coding c, const stream_view<T, Index>&) {
    return c;
}
template <Element T, IndexType Index>
std::size_t most_payload_bytes(const stream_view<T, Index>&, const coding&) {
    return 0;
}
template <Element T>
std::size_t encode_values(std::span<const T>, const wire::header&, random_key, byte_span) {
    return 0;
}
template <Element T, IndexType Index>
std::size_t encode_indices(const stream_view<T, Index>&, index_coding, byte_span) {
    return 0;
}

}  // namespace rill::inline RILL_ABI::detail
