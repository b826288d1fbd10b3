// The payload of a frame: indices and values in their codings. Frames are written and read through stream/frame.hpp.
#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/text.hpp>
#include <rill/kernel/bf16.hpp>
#include <rill/kernel/index_coding.hpp>
#include <rill/kernel/index_rows.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/quantize.hpp>
#include <rill/stream/detail/value_length.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The types of a stream, as headers tell them.
struct stream_types {
    element_type element;
    std::uint8_t index_bytes;

    template <Element T, IndexType Index>
    static constexpr stream_types of() {
        return {element_type_of<T>, sizeof(Index)};
    }

    std::size_t element_bytes() const { return wire::detail::element_bytes(element); }
    void require(const wire::header& head) const {
        wire::detail::require(head.element == element, "another element type than was due");
        wire::detail::require(head.index_bytes == index_bytes, "another index width than was due");
    }
    /// Whether the values precede the indices. They do unless both are raw and the indices are wider, so that arrays
    /// that are read in place are aligned.
    bool values_first(const coding& codes) const { return !(codes.is_view() && index_bytes > element_bytes()); }
};

/// Sets the fields of a header that describe a stream.
template <Element T, IndexType Index>
void describe(wire::header& head, const stream_view<T, Index>& view) {
    head.element = element_type_of<T>;
    head.index_bytes = sizeof(Index);
    head.range = view.range();
    head.count = view.count();
}

/// The bytes of values in a coding of the user's, as a header tells them.
inline std::uint32_t own_length(const coding& codes, std::size_t element_bytes, std::size_t count) {
    const std::size_t length = value_length(codes, element_bytes, count);
    RILL_EXPECTS(length <= 0xFFFFFFFFU && count <= 8 * length,
                 "own_values: values take a bit each or more, and in one frame less than 4 GiB");
    return static_cast<std::uint32_t>(length);
}

/// The coding as it appears in the header of a frame of `view`.
template <coding_set Among = coding_set{}, Element T, IndexType Index>
coding resolve(coding codes, const stream_view<T, Index>& view) {
    RILL_EXPECTS(std::floating_point<T> || codes.values == value_coding::raw,
                 "lossy codings need floating-point values");
    if (view.is_dense()) codes.indices = index_coding::dense;
    if (codes.indices != index_coding::whole_rows) codes.row = 1;
    if constexpr (Among.indices == index_coding::smallest)
        if (codes.indices == index_coding::smallest)
            codes.indices = kernel::smallest_index_coding(view.indices(), view.range());
    if (codes.values == value_coding::own) codes.bucket = own_length(codes, sizeof(T), view.count());
    return codes;
}

template <coding_set Among = coding_set{}, IndexType Index>
std::size_t index_length(const coding& codes, std::span<const Index> indices, segment range) {
    if (codes.indices == index_coding::dense) return 0;
    return kernel::encoded_index_bytes<Index, Among>(codes.indices, indices, range, codes.row);
}

template <Element T>
std::size_t value_length(const coding& codes, std::size_t count) {
    return value_length(codes, sizeof(T), count);
}
/// The bytes of the values of a frame, by its header.
inline std::size_t value_length(const wire::header& head, std::size_t element_bytes) {
    if (head.codes.values == value_coding::own) return head.codes.bucket;
    return value_length(head.codes, element_bytes, static_cast<std::size_t>(head.count));
}

template <Element T, IndexType Index>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_entry(const stream_view<T, Index>& view, std::size_t entry,
                                                         const char* why) {
    const std::size_t coordinate =
        view.is_dense() ? view.range().begin + entry : static_cast<std::size_t>(view.indices()[entry]);
    throw invalid_value(text_of({"coordinate ", coordinate, why}));
}

/// Throws `invalid_value` naming the coordinate of the first entry that a lossy coding cannot hold.
template <Element T, IndexType Index, Executor Exec>
void require_roundable(const stream_view<T, Index>& view, const coding& codes, const Exec& executor) {
    if (const auto bad = kernel::find_non_finite(view.values(), executor))
        refuse_entry(view, *bad, " is not finite and cannot be rounded");
    if constexpr (std::floating_point<T>)
        if (codes.values == value_coding::bf16)
            if (const auto bad = kernel::find_beyond_bf16(view.values(), executor))
                refuse_entry(view, *bad, " is too large for bfloat16");
}

/// Throws `invalid_value`, which names two coordinates, if `codes` needs whole rows and a row of `view` is not whole.
template <Element T, IndexType Index>
void require_whole_rows(const stream_view<T, Index>& view, const coding& codes) {
    if (codes.indices == index_coding::whole_rows && !view.is_dense())
        kernel::whole_rows{codes.row}.count_rows(view.indices(), view.range());
}

/// Writes values, raw or rounded. `out` is aligned and has their coded size. Random rounding of value i uses random
/// number `first` + i of `key`.
template <coding_set Among = coding_set{}, Element T, Executor Exec>
void encode_values(std::span<const T> values, const coding& codes, random_key key, std::uint64_t first, byte_span out,
                   const Exec& executor) {
    if (codes.values == value_coding::raw) {
        if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
        return;
    }
    if constexpr (Among.rounds && std::floating_point<T>) {
        if (codes.values == value_coding::bf16) return kernel::encode_bf16(values, out, executor);
        if (codes.values == value_coding::own)
            return codes.own.does->template of<T>().encode(codes.own.self, values, key, first, out);
        const std::size_t buckets = kernel::quantize_buckets(values.size(), codes.bucket);
        const std::span<T> scales(reinterpret_cast<T*>(out.data()), buckets);
        kernel::quantize(values, static_cast<unsigned>(qsgd_bits(codes.values)), codes.bucket, key, first, scales,
                         out.subspan(scales.size_bytes()), executor);
    }
}

/// Reads bytes of a frame as an array, which must be aligned; transports deliver frames aligned.
template <class T>
std::span<const T> elements_of(byte_view bytes) {
    wire::detail::require(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0, "misaligned");
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Reads values that a coding of the user's has written. All values that a lossy coding is given are finite.
template <std::floating_point T, Executor Exec>
void decode_own(const own_coding& own, byte_view bytes, std::span<T> values, const Exec& executor) {
    own.does->template of<T>().decode(own.self, bytes, values);
    wire::detail::require(own.does->is_lossless || !kernel::find_non_finite(std::span<const T>(values), executor),
                          "a decoded value is not finite");
}

template <IndexType Index>
void require_ascending(std::span<const Index> indices, segment range) {
    if (indices.empty()) return;
    wire::detail::require(range.begin <= indices.front() && indices.back() < range.end, "index outside the range");
    bool ascending = true;
    for (std::size_t i = 1; i < indices.size(); ++i) ascending = (indices[i - 1] < indices[i]) & ascending;
    wire::detail::require(ascending, "indices are not ascending");
}

/// The validated indices of a frame: a view of its bytes if indices and values are raw, otherwise decoded into `room`,
/// which holds them. (Raw indices behind coded values may be misaligned.)
template <coding_set Among = coding_set{}, IndexType Index>
std::span<const Index> decode_indices(const wire::header& head, byte_view bytes, std::span<Index> room) {
    const auto count = static_cast<std::size_t>(head.count);
    if (head.codes.is_view()) {
        wire::detail::require(bytes.size() / sizeof(Index) == count && bytes.size() % sizeof(Index) == 0,
                              "as many indices as entries are due");
        const std::span<const Index> indices = elements_of<Index>(bytes);
        require_ascending(indices, head.range);
        return indices;
    }
    if constexpr (Among.has_only_views()) {
        kernel::detail::refuse_coding(head.codes.indices);
    } else {
        kernel::check_index_count<Index, Among>(head.codes.indices, bytes, count, head.range, head.codes.row);
        kernel::decode_indices<Index, Among>(head.codes.indices, bytes, count, head.range, room, head.codes.row);
        return room;
    }
}

/// The values of a frame: a view of its bytes if they are raw, otherwise decoded into `room`, which holds them.
template <coding_set Among = coding_set{}, Element T, Executor Exec>
std::span<const T> decode_values(const wire::header& head, byte_view bytes, std::span<T> room, const Exec& executor) {
    if (head.codes.values == value_coding::raw) return elements_of<T>(bytes);
    wire::detail::require(Among.rounds, "rounded values where exact ones were due");
    if constexpr (Among.rounds && std::floating_point<T>) {
        const auto count = static_cast<std::size_t>(head.count);
        if (head.codes.values == value_coding::own) {
            wire::detail::require(head.codes.own.does != nullptr, "values in a coding of another rank's own");
            wire::detail::require(value_length<T>(head.codes, count) == bytes.size(), "too few or too many values");
        }
        if (head.codes.values == value_coding::bf16) {
            kernel::decode_bf16(bytes, room, executor);
        } else if (head.codes.values == value_coding::own) {
            decode_own<T>(head.codes.own, bytes, room, executor);
        } else {
            const std::size_t buckets = kernel::quantize_buckets(count, head.codes.bucket);
            const std::span<const T> scales = elements_of<T>(bytes.first(buckets * sizeof(T)));
            kernel::check_scales(scales);
            kernel::dequantize(bytes.subspan(scales.size_bytes()), scales,
                               static_cast<unsigned>(qsgd_bits(head.codes.values)), head.codes.bucket, room, executor);
        }
    }
    return room;
}

}}}  // namespace rill::RILL_ABI::detail
