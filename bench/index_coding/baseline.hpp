// What index codings are compared with: straightforward ways to write and read ascending indices.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace bench {

using index_list = std::vector<std::uint32_t>;
using byte_list = std::vector<unsigned char>;

/// Gaps in bytes of seven bits each.
struct leb128 {
    static std::size_t encode(const index_list& indices, byte_list& out) {
        std::size_t at = 0;
        std::uint32_t lowest = 0;
        for (const std::uint32_t index : indices) {
            std::uint32_t gap = index - lowest;
            for (; gap >= 128; gap >>= 7) out[at++] = static_cast<unsigned char>(gap | 128U);
            out[at++] = static_cast<unsigned char>(gap);
            lowest = index + 1;
        }
        return at;
    }
    static void decode(const byte_list& bytes, index_list& indices) {
        std::size_t at = 0;
        std::uint32_t lowest = 0;
        for (std::uint32_t& index : indices) {
            std::uint32_t gap = 0;
            unsigned shift = 0;
            for (; bytes[at] >= 128; shift += 7) gap |= (bytes[at++] & 127U) << shift;
            index = lowest + (gap | static_cast<std::uint32_t>(bytes[at++]) << shift);
            lowest = index + 1;
        }
    }
};

/// Elias-Fano as usually written: the low bits index by index, the upper ones by counting trailing zeros. Checks
/// nothing.
struct scalar_elias_fano {
    std::size_t count = 0, size = 0;
    unsigned width = 0;

    scalar_elias_fano(std::size_t count_, std::size_t size_) : count(count_), size(size_) {
        while ((size >> (width + 1)) >= count) ++width;
    }
    std::size_t low_bytes() const { return (count * width + 63) / 64 * 8 + 8; }
    std::size_t bytes() const { return low_bytes() + (count + (size >> width)) / 64 * 8 + 16; }

    void encode(const index_list& indices, byte_list& out) const {
        std::memset(out.data(), 0, out.size());
        unsigned char* upper = out.data() + low_bytes();
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint64_t low = indices[i] & ((std::uint64_t{1} << width) - 1);
            unsigned char* at = out.data() + i * width / 8;
            std::uint64_t word;
            std::memcpy(&word, at, 8);
            word |= low << (i * width % 8);
            std::memcpy(at, &word, 8);
            const std::size_t place = (indices[i] >> width) + i;
            upper[place / 8] = static_cast<unsigned char>(upper[place / 8] | 1U << (place % 8));
        }
    }
    void decode(const byte_list& bytes, index_list& indices) const {
        const unsigned char* upper = bytes.data() + low_bytes();
        std::size_t i = 0;
        for (std::size_t base = 0; i < count; base += 64) {
            std::uint64_t word;
            std::memcpy(&word, upper + base / 8, 8);
            for (; word != 0; word &= word - 1, ++i) {
                const std::size_t place = base + static_cast<std::size_t>(std::countr_zero(word));
                std::uint64_t low;
                std::memcpy(&low, bytes.data() + i * width / 8, 8);
                low = low >> (i * width % 8) & ((std::uint64_t{1} << width) - 1);
                indices[i] = static_cast<std::uint32_t>((place - i) << width | low);
            }
        }
    }
};

}  // namespace bench
