// The byte layout of frame headers, which is defined only here. All numbers are little-endian.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/error.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rill { inline namespace RILL_ABI { namespace wire {

static_assert(std::endian::native == std::endian::little,
              "rill: frames are views of memory; big-endian hosts need swaps");

/// The first four bytes of every frame.
inline constexpr std::uint32_t magic = 0x6C6C6972U;  // "rill"
/// The version of the layout; a frame of another version is refused.
inline constexpr std::uint8_t version = 1;
/// The size of the header that precedes the content of every frame, in bytes.
inline constexpr std::size_t header_bytes = 96;

/// The header of a frame, which carries the entries of `range` that one rank, or a fold of several ranks, contributes.
struct header {
    message_kind kind{};
    element_type element = element_type::none;
    std::uint8_t index_bytes = 0;  ///< width of the stream's index type, 4 or 8; also set when dense
    coding codes{};                ///< `indices` is `dense` for dense content
    std::uint32_t epoch = 0;       ///< of the sender's view
    std::uint64_t context = 0;
    std::uint64_t number = 0;  ///< of the operation, or of the round, within its context
    std::uint32_t call = 0;    ///< hash of the call's signature, plus the part or rank that `range` does not tell
    std::uint32_t age = 0;     ///< age of the oldest contribution, in steps
    std::uint64_t dimension = 0;
    segment range{};
    std::uint64_t count = 0;         ///< entries
    std::uint64_t index_length = 0;  ///< bytes of the coded indices
    double weight = 0;               ///< sum of the weights of the contributions
    std::uint32_t contributors = 0;  ///< number of contributions

    friend bool operator==(const header&, const header&) = default;
};

/// Room for an encoded header.
using header_block = std::array<std::byte, header_bytes>;

namespace detail {
template <class N>
void put(std::byte* block, std::size_t at, N number) {
    std::memcpy(block + at, &number, sizeof(N));
}

template <class N>
N get(const std::byte* block, std::size_t at) {
    N number;
    std::memcpy(&number, block + at, sizeof(N));
    return number;
}
}  // namespace detail

/// Writes `header_bytes` bytes to `block`. Validates nothing.
[[gnu::noinline]] inline void encode(const header& h, std::byte* block) {
    using detail::put;
    put(block, 0, magic);
    put(block, 4, version);
    put(block, 5, h.kind.number);
    put(block, 6, static_cast<std::uint8_t>(h.element));
    put(block, 7, h.index_bytes);
    put(block, 8, static_cast<std::uint8_t>(h.codes.values));
    put(block, 9, static_cast<std::uint8_t>(h.codes.indices));
    put(block, 10, h.kind.protocol);
    put(block, 12, h.epoch);
    put(block, 16, h.context);
    put(block, 24, h.number);
    put(block, 32, h.call);
    put(block, 36, h.age);
    put(block, 40, h.dimension);
    put(block, 48, std::uint64_t{h.range.begin});
    put(block, 56, std::uint64_t{h.range.end});
    put(block, 64, h.count);
    put(block, 72, h.index_length);
    if (h.codes.indices == index_coding::whole_rows) put(block, 78, h.codes.row);  // the length takes 48 bits at most
    put(block, 80, h.weight);
    put(block, 88, h.contributors);
    put(block, 92, h.codes.bucket);
}

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(const char* what) {
    throw protocol_error(text_of({"invalid frame: ", what}));
}
inline void require(bool holds, const char* what) {
    if (!holds) refuse(what);
}

constexpr bool is_known(value_coding coding) {
    return coding <= value_coding::bf16 || is_qsgd(coding) || coding == value_coding::own;
}

inline std::size_t element_bytes(element_type type) {
    return type == element_type::float32 || type == element_type::int32 ? 4 : 8;
}

[[gnu::noinline]] inline void validate(const header& h) {
    const bool is_operation = h.kind.number < static_cast<std::uint8_t>(operation::departure);
    require(h.kind.number != 0 && (h.kind.protocol != 0 || is_operation), "unknown operation");
    require(h.element > element_type::none && h.element <= element_type::int64, "unknown element type");
    require(h.index_bytes == 4 || h.index_bytes == 8, "unknown index width");
    require(is_known(h.codes.values), "unknown value coding");
    require(is_in_frames(h.codes.indices), "unknown index coding");
    require(h.codes.bucket > 0 || h.codes.values == value_coding::own, "empty quantiser buckets");
    require(h.codes.row > 0, "empty rows");
    const bool floating = h.element == element_type::float32 || h.element == element_type::float64;
    require(floating || h.codes.is_lossless(), "lossy coding of integers");
    require(h.range.begin <= h.range.end && h.range.end <= h.dimension, "range outside the dimension");
    require(h.index_bytes == 8 || h.dimension <= std::uint64_t{1} << 32, "dimension beyond the index type");
    if (h.codes.indices == index_coding::dense)
        require(h.count == h.range.size() && h.index_length == 0, "a dense frame has every coordinate and no index");
    else
        require(h.count <= h.range.size(), "more entries than coordinates");
    require(h.weight >= 0 && h.weight <= 1e300, "weight is not a finite non-negative number");
}
}  // namespace detail

/// Reads and validates a header of `header_bytes` bytes. Throws `protocol_error`.
[[gnu::noinline]] inline header decode(const std::byte* block) {
    using detail::get;
    detail::require(get<std::uint32_t>(block, 0) == magic, "wrong magic number");
    detail::require(get<std::uint8_t>(block, 4) == version, "unknown version");
    header h;
    h.kind.protocol = get<std::uint16_t>(block, 10);
    h.kind.number = get<std::uint8_t>(block, 5);
    h.element = static_cast<element_type>(get<std::uint8_t>(block, 6));
    h.index_bytes = get<std::uint8_t>(block, 7);
    h.codes.values = static_cast<value_coding>(get<std::uint8_t>(block, 8));
    h.codes.indices = static_cast<index_coding>(get<std::uint8_t>(block, 9));
    h.epoch = get<std::uint32_t>(block, 12);
    h.context = get<std::uint64_t>(block, 16);
    h.number = get<std::uint64_t>(block, 24);
    h.call = get<std::uint32_t>(block, 32);
    h.age = get<std::uint32_t>(block, 36);
    h.dimension = get<std::uint64_t>(block, 40);
    h.range = {get<std::uint64_t>(block, 48), get<std::uint64_t>(block, 56)};
    h.count = get<std::uint64_t>(block, 64);
    h.index_length = get<std::uint64_t>(block, 72);
    if (h.codes.indices == index_coding::whole_rows) {
        h.codes.row = get<std::uint16_t>(block, 78);
        h.index_length &= (std::uint64_t{1} << 48) - 1;
    }
    h.weight = get<double>(block, 80);
    h.contributors = get<std::uint32_t>(block, 88);
    h.codes.bucket = get<std::uint32_t>(block, 92);
    detail::validate(h);
    return h;
}

}}}  // namespace rill::RILL_ABI::wire
