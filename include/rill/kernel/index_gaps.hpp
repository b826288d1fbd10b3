// Indices as bit-packed gaps (frame of reference).
//
// The gap of an index is the number of coordinates skipped since the previous one, or since universe.begin. 128 gaps
// form a block: a byte with the width w that its largest gap needs, then the gaps with w bits each, low bits first,
// padded with zero bits to a whole byte. The last block may be shorter.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/index_check.hpp>
#include <rill/kernel/detail/little_endian.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

inline constexpr std::size_t gap_block = 128;
inline constexpr std::size_t gap_padding = 16;  // lets whole words be read and written at the last gap

constexpr std::size_t gap_bytes(std::size_t count, unsigned width) { return (count * width + 7) / 8; }

/// Writes the gaps of up to 128 indices and returns the bits that the widest of them needs.
template <IndexType Index>
unsigned make_gaps(std::span<const Index> indices, Index lowest, Index* gaps) {
    gaps[0] = static_cast<Index>(indices[0] - lowest);
    Index all = gaps[0];
    if (indices.size() == gap_block)
        for (std::size_t i = 1; i < gap_block; ++i)
            all |= gaps[i] = static_cast<Index>(indices[i] - indices[i - 1] - 1);
    else
        for (std::size_t i = 1; i < indices.size(); ++i)
            all |= gaps[i] = static_cast<Index>(indices[i] - indices[i - 1] - 1);
    return static_cast<unsigned>(std::bit_width(all));
}

/// Writes eight gaps of `width` < 16 bits, which take `width` bytes, and up to 15 bytes behind them.
template <IndexType Index>
void pack_eight(const Index* gaps, unsigned width, std::byte* out) {
    std::uint64_t pairs[4];
    for (std::size_t i = 0; i < 4; ++i) pairs[i] = gaps[2 * i] | std::uint64_t{gaps[2 * i + 1]} << width;
    const std::uint64_t low = pairs[0] | pairs[1] << (2 * width), high = pairs[2] | pairs[3] << (2 * width);
    store_little(out, low | high << (4 * width));
    if (width > 8) store_little(out + 8, high >> (64 - 4 * width));
}

/// Writes `count` gaps of `width` bits. `out` has `gap_padding` bytes more than the gaps need.
template <IndexType Index>
void pack(const Index* gaps, std::size_t count, unsigned width, std::byte* out) {
    std::uint64_t word = 0;
    unsigned filled = 0;
    std::size_t i = 0;
    if (width < 16)
        for (; i + 8 <= count; i += 8, out += width) pack_eight(gaps + i, width, out);
    for (; i < count; ++i) {
        const std::uint64_t gap = gaps[i];
        word |= gap << filled;
        filled += width;
        if (filled < 64) continue;
        store_little(out, word);
        out += 8;
        filled -= 64;
        word = filled == 0 ? 0 : gap >> (width - filled);
    }
    store_little(out, word);
}

/// Returns gap number `i` of `width` bits. `packed` has `gap_padding` bytes more than the gaps need.
inline std::uint64_t unpack(const std::byte* packed, std::size_t i, unsigned width) {
    const std::size_t bit = i * width;
    const std::byte* at = packed + bit / 8;
    const unsigned shift = bit % 8;
    std::uint64_t word = load_little<std::uint64_t>(at) >> shift;
    if (width + shift > 64) word |= load_little<std::uint64_t>(at + 8) << (64 - shift);
    return width == 64 ? word : word & ((std::uint64_t{1} << width) - 1);
}

}  // namespace detail

/// Indices as the numbers of coordinates between them, bit-packed by blocks of 128.
struct packed_gaps {
    /// Exact; costs a pass over the indices.
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment universe) {
        Index gaps[detail::gap_block];
        std::size_t size = 0;
        for_each_block(indices, universe, [&](auto part, Index lowest) {
            size += 1 + detail::gap_bytes(part.size(), detail::make_gaps(part, lowest, gaps));
        });
        return size;
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        Index gaps[detail::gap_block];
        std::byte packed[detail::gap_block * 8 + detail::gap_padding];
        std::size_t size = 0;
        for_each_block(indices, universe, [&](auto part, Index lowest) {
            const unsigned width = detail::make_gaps(part, lowest, gaps);
            const std::size_t bytes = detail::gap_bytes(part.size(), width);
            RILL_EXPECTS(out.size() - size > bytes, "packed_gaps: too little room for the indices");
            detail::pack(gaps, part.size(), width, packed);
            out[size] = static_cast<std::byte>(width);
            std::memcpy(out.data() + size + 1, packed, bytes);
            size += 1 + bytes;
        });
        return size;
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices. Call it before allocating room for them.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        const std::size_t blocks = count / detail::gap_block + (count % detail::gap_block != 0 ? 1U : 0U);
        if (bytes.size() < blocks) detail::bad_indices("packed-gap", {bytes.size(), " bytes cannot hold ", count});
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t lowest = universe.begin;
        for (std::size_t first = 0; first < count; first += detail::gap_block) {
            const std::size_t part = std::min(detail::gap_block, count - first);
            bytes = decode_block(bytes, first, out.subspan(first, part), lowest, universe.end);
        }
        if (!bytes.empty()) detail::bad_indices("packed-gap", {bytes.size(), " bytes too many"});
    }

  private:
    /// Calls visit(up to 128 indices, the lowest value that the first of them could have).
    template <IndexType Index, class Visit>
    static void for_each_block(std::span<const Index> indices, segment universe, Visit visit) {
        Index lowest = static_cast<Index>(universe.begin);
        for (std::size_t first = 0; first < indices.size(); first += detail::gap_block) {
            const auto part = indices.subspan(first, std::min(detail::gap_block, indices.size() - first));
            visit(part, lowest);
            lowest = static_cast<Index>(part.back() + 1);
        }
    }

    /// Decodes one block; returns the bytes behind it and advances `lowest` past its last index.
    template <IndexType Index>
    static byte_view decode_block(byte_view bytes, std::size_t first, std::span<Index> out, std::size_t& lowest,
                                  std::size_t end) {
        if (bytes.empty()) detail::bad_indices("packed-gap", {"no bytes left for number ", first});
        const unsigned width = std::to_integer<unsigned>(bytes[0]);
        if (width > sizeof(Index) * 8)
            detail::bad_indices("packed-gap", {"a width of ", width, " bits at number ", first});
        const std::size_t size = detail::gap_bytes(out.size(), width);
        if (bytes.size() - 1 < size) detail::bad_indices("packed-gap", {"the block at number ", first, " is cut off"});

        std::byte packed[detail::gap_block * 8 + detail::gap_padding];
        std::memcpy(packed, bytes.data() + 1, size);
        std::memset(packed + size, 0, detail::gap_padding);
        const std::size_t used = out.size() * width % 8;
        if (used != 0 && (std::to_integer<unsigned>(packed[size - 1]) >> used) != 0)
            detail::bad_indices("packed-gap", {"a bit after the block at number ", first, " is set"});
        std::size_t next = lowest;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const std::uint64_t gap = detail::unpack(packed, i, width);
            if (gap >= end - next)
                detail::bad_indices("packed-gap", {"number ", first + i, " lies outside of the universe"});
            out[i] = static_cast<Index>(next + gap);
            next += static_cast<std::size_t>(gap) + 1;
        }
        lowest = next;
        return bytes.subspan(1 + size);
    }
};

}}}  // namespace rill::RILL_ABI::kernel
