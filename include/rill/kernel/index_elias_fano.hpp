// Elias-Fano coding of indices: the low bits of each are stored as they are, the rest in unary.
//
// n strictly ascending indices of a universe of u coordinates are stored as n ascending (not strictly) numbers v(i) =
// index(i) - universe.begin - i, which are at most u - n. The lower part holds the lowest w bits of each v(i), low bits
// first, with w = floor(log2((u - n) / n)), or 0 if n > u - n. The upper part has n + ((u - n) >> w) bits, of which
// those at (v(i) >> w) + i are set. Each part is padded with zero bits to a whole byte. So n and u determine the size.
// If w is 0 and n is not, the bytes are those of the bitmap.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/elias_fano_decoder.hpp>
#include <rill/kernel/detail/index_check.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/detail/set_bits.hpp>
#include <rill/kernel/index_gaps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// Sets bits of zeroed memory in ascending order, without a branch or a load for each.
class upper_bits {
  public:
    explicit upper_bits(byte_span out) : out_(out) {}

    /// Sets the bits at the `count` places, count > 0.
    template <class Word>
    void set(const Word* places, std::size_t count) {
        if (places[count - 1] / 64 >= out_.size() / 8) return set_by_bytes(places, count);
        std::byte* const out = out_.data();
        std::uint64_t word = word_;  // local copies: the compiler must assume that writes may alias members
        std::size_t before = at_;
        for (std::size_t j = 0; j < count; ++j) {
            const std::size_t at = static_cast<std::size_t>(places[j] / 64);
            word = (at == before ? word : 0) | std::uint64_t{1} << (places[j] % 64);
            before = at;
            store_little(out + 8 * at, word);
        }
        word_ = word;
        at_ = before;
    }

  private:
    /// Used when the word of the last place would reach beyond the memory.
    template <class Word>
    void set_by_bytes(const Word* places, std::size_t count) {
        for (std::size_t j = 0; j < count; ++j)
            out_[static_cast<std::size_t>(places[j] / 8)] |= static_cast<std::byte>(1U << (places[j] % 8));
    }

    byte_span out_;
    std::uint64_t word_ = 0;  // the word at at_, so far
    std::size_t at_ = 0;
};

}  // namespace detail

/// Elias-Fano coding of indices (Elias 1974, Fano 1971). Each index is stored minus its position, because no two are
/// equal. The size is within 0.6 bits per index of the entropy of random indices, at every density.
struct elias_fano {
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment universe) {
        return size_of(indices.size(), universe);
    }

    /// Returns the bytes that any `count` indices of the universe need.
    static std::size_t size_of(std::size_t count, segment universe) {
        return detail::elias_fano_layout(count, universe.size()).bytes();
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        return encode_from<Index>(indices.size(), universe, out, [&](Index* to, std::size_t first, std::size_t some) {
            std::memcpy(to, indices.data() + first, some * sizeof(Index));
        });
    }

    /// The same of `count` indices, which need not lie in memory: `fetch(to, first, some)` writes `some` of them, from
    /// number `first` on. It is called in ascending order.
    template <IndexType Index, class Fetch>
    static std::size_t encode_from(std::size_t count, segment universe, byte_span out, Fetch&& fetch) {
        const detail::elias_fano_layout layout(count, universe.size());
        RILL_EXPECTS(out.size() >= layout.bytes(), "elias_fano: too little room for the indices");
        const byte_span upper = out.subspan(layout.low_bytes, layout.upper_bytes);
        std::fill(upper.begin(), upper.end(), std::byte{0});
        detail::upper_bits bits(upper);
        for (std::size_t first = 0; first < count; first += detail::block) {
            Index v[detail::block];
            const std::size_t some = std::min(detail::block, count - first);
            fetch(static_cast<Index*>(v), first, some);
            encode_block(v, some, first, static_cast<Index>(universe.begin), layout,
                         out.subspan(first / 8 * layout.width), bits);
        }
        return layout.bytes();
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices. Call it before allocating room for them.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (const std::size_t due = size_of(count, universe); bytes.size() != due)
            detail::bad_indices("Elias-Fano", {bytes.size(), " bytes, expected ", due});
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        decode_by<detail::native_elias_fano>(bytes, count, universe, out);
    }

    /// Decodes with the inner loops `Loops`.
    template <class Loops, IndexType Index>
    static void decode_by(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        if (count == 0) return;
        const detail::elias_fano_layout layout(count, universe.size());
        if (detail::has_bits_behind(bytes.first(layout.low_bytes), count * layout.width))
            detail::bad_indices("Elias-Fano", {"a bit after the low bits is set"});
        if (detail::has_bits_behind(bytes, layout.upper_bits))
            detail::bad_indices("Elias-Fano", {"a bit after the last is set"});
        if (!detail::decode_elias_fano<Loops>(layout, bytes, universe.begin, out.data()))
            refuse(bytes, layout, universe);
    }

  private:
    template <IndexType Index>
    static void encode_block(Index (&v)[detail::block], std::size_t count, std::size_t first, Index begin,
                             const detail::elias_fano_layout& layout, byte_span low, detail::upper_bits& bits) {
        constexpr std::size_t block = detail::block;
        Index places[block];
        std::fill(v + count, v + block, Index{0});
        const Index mask = static_cast<Index>((std::uint64_t{1} << layout.width) - 1);
        for (std::size_t j = 0; j < block; ++j) v[j] -= static_cast<Index>(begin + first + j);
        for (std::size_t j = 0; j < block; ++j)
            places[j] = static_cast<Index>((v[j] >> layout.width) + static_cast<Index>(first + j));
        for (auto& each : v) each &= mask;
        bits.set(places, count);
        if (layout.width == 0) return;
        std::byte packed[block * 8 + detail::gap_padding];
        detail::pack(v, count, layout.width, packed);
        std::memcpy(low.data(), packed, detail::gap_bytes(count, layout.width));
    }

    /// Throws the `protocol_error` that names what is wrong with `bytes`.
    [[noreturn]] static void refuse(byte_view bytes, const detail::elias_fano_layout& layout, segment universe) {
        const byte_view upper = bytes.subspan(layout.low_bytes);
        if (const std::size_t ones = detail::count_ones(upper); ones != layout.count)
            detail::bad_indices("Elias-Fano", {ones, " bits are set in the upper part, expected ", layout.count});
        std::size_t lowest = universe.begin, i = 0, place = 0;
        for (;; ++i, ++place) {  // until the first index that is out of order; there is one
            while ((std::to_integer<unsigned>(upper[place / 8]) >> (place % 8) & 1U) == 0) ++place;
            std::uint64_t low = 0;
            for (unsigned b = layout.width; b-- > 0;) {
                const std::size_t bit = i * layout.width + b;
                low = 2 * low + (std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1U);
            }
            const std::size_t v = ((place - i) << layout.width) + static_cast<std::size_t>(low);
            if (v > layout.greatest) detail::bad_indices("Elias-Fano", {"number ", i, " lies outside of the universe"});
            const std::size_t index = universe.begin + v + i;
            if (index < lowest) detail::bad_index("Elias-Fano", i, index, lowest, universe.end);
            lowest = index + 1;
        }
    }
};

}}}  // namespace rill::RILL_ABI::kernel
