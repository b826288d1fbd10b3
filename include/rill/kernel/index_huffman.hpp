// Indices as a bitmap whose bytes are Huffman-coded, in four streams.
//
// `byte_code` derives a canonical code from the number of indices and the size of the universe: bytes with fewer set
// bits get shorter codes (bytes with more, if more than half of all bits are set); equals are ordered by value. The
// bytes of the bitmap (index_bitmap.hpp) are written in this code. The code of byte b goes to stream b % 4, first bit
// first, into the lowest free bits. Each stream is padded with zero bits to a whole byte. First come the lengths in
// bytes of the first three streams, 8 bytes each, then the streams. Zero indices take zero bytes.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/huffman_bytes.hpp>
#include <rill/kernel/detail/index_check.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/set_bits.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Writes indices as a Huffman-coded bitmap. The size is near the entropy of random indices from a density of a tenth
/// on.
struct huffman_bitmap {
    /// Exact. Cost: a pass over the parts of the bitmap in which a bit is set.
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment universe) {
        if (indices.empty()) return 0;
        const detail::byte_code code(indices.size(), universe.size());
        const auto lengths = stream_lengths(indices, universe, code);
        return header_bytes + lengths[0] + lengths[1] + lengths[2] + lengths[3];
    }

    /// A lower bound on the bytes of any `count` indices of `universe`.
    static std::size_t least_size(std::size_t count, segment universe) {
        return count == 0 ? 0 : header_bytes + detail::bytes_for_bits(detail::bytes_for_bits(universe.size()));
    }

    /// A closer lower bound on the bytes of any `count` indices of `universe`: as if they lay where their bytes have
    /// the shortest codes. Cost: constant, some microseconds.
    static std::size_t least_coded_size(std::size_t count, segment universe) {
        if (count == 0) return 0;
        const detail::byte_code code(count, universe.size());
        const double mean = static_cast<double>(count) / static_cast<double>(detail::bytes_for_bits(universe.size()));
        unsigned shortest[9] = {99, 99, 99, 99, 99, 99, 99, 99, 99};  // of the bytes with so many bits set
        for (unsigned byte = 0; byte < 256; ++byte) {
            unsigned& least = shortest[std::popcount(byte)];
            least = std::min(least, code.length(static_cast<std::byte>(byte)));
        }
        // The shortest mean length of bytes that have `mean` bits set in the mean: two kinds of bytes suffice.
        double bits = 99;
        for (int few = 0; few <= 8 && few <= mean; ++few)
            for (int many = few + 1; many <= 8; ++many)
                if (many >= mean)
                    bits = std::min(bits, shortest[few] + (mean - few) / (many - few) *
                                                              (static_cast<double>(shortest[many]) - shortest[few]));
        const auto bytes = static_cast<double>(detail::bytes_for_bits(universe.size()));
        return header_bytes + static_cast<std::size_t>(bytes * bits / 8);
    }

    /// The expected bytes of `count` random indices.
    static double expected_size(std::size_t count, segment universe) {
        if (count == 0) return 0;
        const detail::byte_code code(count, universe.size());
        const double p = static_cast<double>(count) / static_cast<double>(universe.size());
        double bits = 0;  // expected code length of a byte
        for (unsigned byte = 0; byte < 256; ++byte) {
            double chance = 1;
            for (unsigned bit = 0; bit < 8; ++bit) chance *= (byte >> bit & 1U) != 0 ? p : 1 - p;
            bits += chance * code.length(static_cast<std::byte>(byte));
        }
        const auto bytes = static_cast<double>(detail::bytes_for_bits(universe.size()));
        return header_bytes + bytes * bits / 8 + streams / 2.0;  // each stream is padded by half a byte on average
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        if (indices.empty()) return 0;
        const detail::byte_code code(indices.size(), universe.size());
        const auto lengths = stream_lengths(indices, universe, code);
        std::array<detail::bit_writer, streams> to;
        std::size_t size = header_bytes;
        for (std::size_t s = 0; s < streams; ++s) {
            RILL_EXPECTS(out.size() - size >= lengths[s], "huffman_bitmap: too little room for the indices");
            if (s + 1 < streams) detail::store_little(out.data() + 8 * s, std::uint64_t{lengths[s]});
            to[s] = detail::bit_writer(out.subspan(size, lengths[s]));
            size += lengths[s];
        }
        const std::size_t all = detail::bytes_for_bits(universe.size());
        for (std::size_t first = 0, i = 0; first < all; first += part_bytes) {
            std::byte bytes[part_bytes];
            i = fill_part(indices, universe, first, i, bytes);
            write_part(code, bytes, std::min(part_bytes, all - first), to);
        }
        return size;
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices. Call it before allocating room for them.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() < least_size(count, universe) || (count == 0 && !bytes.empty()))
            detail::bad_indices("Huffman-coded",
                                {bytes.size(), " bytes cannot hold ", count, " of ", universe.size(), " coordinates"});
        if (count == 0) return;
        std::size_t left = bytes.size() - header_bytes;
        for (std::size_t s = 0; s + 1 < streams; ++s) {
            const auto length = detail::load_little<std::uint64_t>(bytes.data() + 8 * s);
            if (length > left)
                detail::bad_indices("Huffman-coded",
                                    {"stream ", s, " of ", length, " bytes, of which ", left, " are left"});
            left -= static_cast<std::size_t>(length);
        }
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        if (count == 0) return;
        const detail::byte_table table(detail::byte_code(count, universe.size()));
        std::array<detail::bit_reader, streams> from;
        for (std::size_t s = 0, begin = header_bytes; s < streams; ++s) {
            from[s] = detail::bit_reader(bytes, begin);
            begin += length_of(bytes, s);
        }
        const bitmap_end end = place_all(table, from, count, universe, out.data());
        check_ends(bytes, from);
        if (end.is_beyond) detail::bad_indices("Huffman-coded", {"a bit after the last coordinate is set"});
        if (end.ones != count) detail::bad_indices("Huffman-coded", {end.ones, " bits are set, expected ", count});
    }

  private:
    static constexpr std::size_t streams = 4;
    static constexpr std::size_t header_bytes = 8 * (streams - 1);
    static constexpr std::size_t at_once = 4 * streams;  // bytes: four codes of each stream fit into a word
    static constexpr std::size_t part_words = 64;
    static constexpr std::size_t part_bytes = 8 * part_words;

    /// Returns the length in bytes of a stream. `bytes` have passed `check_count`.
    static std::size_t length_of(byte_view bytes, std::size_t stream) {
        std::size_t left = bytes.size() - header_bytes;
        for (std::size_t s = 0; s + 1 < streams; ++s) {
            const auto length = static_cast<std::size_t>(detail::load_little<std::uint64_t>(bytes.data() + 8 * s));
            if (s == stream) return length;
            left -= length;
        }
        return left;
    }

    /// Makes the part of the bitmap that begins with byte `first`, from the indices from number `i` on. Returns the
    /// number of the first index beyond the part.
    template <IndexType Index>
    static std::size_t fill_part(std::span<const Index> indices, segment universe, std::size_t first, std::size_t i,
                                 std::byte* bytes) {
        std::fill_n(bytes, part_bytes, std::byte{0});
        for (; i < indices.size(); ++i) {
            const std::size_t j = static_cast<std::size_t>(indices[i]) - universe.begin - 8 * first;
            if (j >= 8 * part_bytes) break;
            bytes[j / 8] |= static_cast<std::byte>(1U << (j % 8));
        }
        return i;
    }

    /// Returns how many of `count` bytes belong to a stream.
    static std::size_t share(std::size_t count, std::size_t stream) { return (count + streams - 1 - stream) / streams; }

    /// Returns the bytes of each stream. Parts of the bitmap without a set bit cost nothing.
    template <IndexType Index>
    static std::array<std::size_t, streams> stream_lengths(std::span<const Index> indices, segment universe,
                                                           const detail::byte_code& code) {
        const std::size_t all = detail::bytes_for_bits(universe.size()), zero = code.length(std::byte{0});
        std::array<std::size_t, streams> bits;
        for (std::size_t s = 0; s < streams; ++s) bits[s] = zero * share(all, s);
        for (std::size_t i = 0; i < indices.size();) {
            std::byte bytes[part_bytes];
            const std::size_t byte = (static_cast<std::size_t>(indices[i]) - universe.begin) / 8;
            const std::size_t first = byte / part_bytes * part_bytes, count = std::min(part_bytes, all - first);
            i = fill_part(indices, universe, first, i, bytes);
            unsigned part[streams] = {};
            std::size_t b = 0;
            for (; b + streams <= count; b += streams)
                for (std::size_t s = 0; s < streams; ++s) part[s] += code.length(bytes[b + s]);
            for (; b < count; ++b) part[b % streams] += code.length(bytes[b]);
            for (std::size_t s = 0; s < streams; ++s) bits[s] += part[s] - zero * share(count, s);
        }
        for (std::size_t& each : bits) each = detail::bytes_for_bits(each);
        return bits;
    }

    static void write_part(const detail::byte_code& code, const std::byte* bytes, std::size_t count,
                           std::array<detail::bit_writer, streams>& to) {
        for (std::size_t first = 0; first < count; first += at_once)
            for (std::size_t s = 0; s < streams; ++s) {
                for (std::size_t b = first + s; b < std::min(count, first + at_once); b += streams)
                    to[s].put(code.code(bytes[b]), code.length(bytes[b]));
                to[s].flush();
            }
    }

    /// Returns the next byte of each stream, that of stream 0 lowest.
    static std::uint64_t next_bytes(const detail::byte_table& table, std::array<detail::bit_reader, streams>& from) {
        const std::uint64_t a = from[0].symbol(table), b = from[1].symbol(table), c = from[2].symbol(table),
                            d = from[3].symbol(table);
        return a | b << 8 | c << 16 | d << 24;
    }

    /// The number of set bits that were read, and whether one of them lies beyond the last coordinate.
    struct bitmap_end {
        std::size_t ones;
        bool is_beyond;
    };

    /// Reads the bitmap and writes the indices of its set bits, at most `count`.
    template <IndexType Index>
    static bitmap_end place_all(const detail::byte_table& table, std::array<detail::bit_reader, streams>& readers,
                                std::size_t count, segment universe, Index* out) {
        std::uint64_t words[part_words];
        std::size_t left = detail::bytes_for_bits(universe.size()), base = universe.begin, ones = 0, n = 0;
        const auto place = [&] {
            for (std::size_t w = 0; w < n; ++w, base += 64) {
                const std::size_t done = std::min(ones, count);
                detail::place_some(words[w], static_cast<Index>(base), out + done, count - done);
                ones += static_cast<std::size_t>(std::popcount(words[w]));
            }
        };
        std::array<detail::bit_reader, streams> from = readers;  // a local copy that can stay in registers
        for (; left >= at_once; left -= 8 * n) {
            n = std::min(part_words, left / at_once * 2);
            for (std::size_t w = 0; w < n; w += 2) {
                from[0].refill(), from[1].refill(), from[2].refill(), from[3].refill();
                words[w] = next_bytes(table, from);
                words[w] |= next_bytes(table, from) << 32;
                words[w + 1] = next_bytes(table, from);
                words[w + 1] |= next_bytes(table, from) << 32;
            }
            place();
        }
        readers = from;
        if (left > 0) {
            words[0] = words[1] = 0;
            n = (left + 7) / 8;
            for (auto& each : readers) each.refill();
            for (std::size_t i = 0; i < left; ++i) words[i / 8] |= readers[i % streams].symbol(table) << (i % 8 * 8);
            place();
        }
        const std::size_t used = universe.size() % 64;
        return {ones, used != 0 && words[n - 1] >> used != 0};
    }

    static void check_ends(byte_view bytes, const std::array<detail::bit_reader, streams>& from) {
        for (std::size_t s = 0, end = header_bytes; s < streams; ++s) {
            const std::size_t length = length_of(bytes, s), used = from[s].used();
            end += length;
            if (detail::bytes_for_bits(used) != length)
                detail::bad_indices("Huffman-coded",
                                    {"stream ", s, " has ", length, " bytes, and ", used, " bits are read"});
            if (detail::has_bits_behind(bytes.first(end), used))
                detail::bad_indices("Huffman-coded", {"a bit after stream ", s, " is set"});
        }
    }
};

}}}  // namespace rill::RILL_ABI::kernel
