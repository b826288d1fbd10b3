// A prefix code for the bytes of a bitmap, and how bits are written and read.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/loop.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// All bytes, ordered by the number of their set bits, then by value.
struct byte_ranks {
    std::uint8_t bytes[256] = {};

    constexpr byte_ranks() {
        std::uint8_t ones[256] = {};
        unsigned next[9] = {0, 1, 9, 37, 93, 163, 219, 247, 255};  // next[n]: where the next byte with n set bits goes
        for (unsigned byte = 0; byte < 256; ++byte) {
            ones[byte] = static_cast<std::uint8_t>(ones[byte / 2] + byte % 2);
            bytes[next[ones[byte]]++] = static_cast<std::uint8_t>(byte);
        }
    }
};
inline constexpr byte_ranks bytes_by_ones;

/// The Huffman code, of at most 12 bits per byte, for the bytes of a bitmap of which `count` of `size` bits are set at
/// random. It is computed with integers only, so that it is the same on every machine and need not be sent. Cost: some
/// 2 us.
class byte_code {
  public:
    static constexpr unsigned longest = 12;

    byte_code(std::size_t count, std::size_t size) {
        const bool is_full = count > size - count;  // then clear bits are the rare ones
        std::uint16_t of_length[longest + 1] = {};
        count_lengths(is_full ? size - count : count, size, of_length);
        std::uint32_t next = 0;  // code, its first bit the highest
        std::size_t rank = 0;    // bytes with rarer bits have longer codes
        for (unsigned bits = 1; bits <= longest; ++bits, next <<= 1)
            for (unsigned n = of_length[bits]; n > 0; --n, ++rank, ++next) {
                const std::size_t byte = bytes_by_ones.bytes[rank] ^ (is_full ? 255U : 0U);
                lengths_[byte] = static_cast<std::uint8_t>(bits);
                codes_[byte] = reversed(next, bits);
            }
    }

    unsigned length(std::byte byte) const { return lengths_[std::to_integer<unsigned>(byte)]; }
    /// The code of `byte`; its first bit is the lowest.
    std::uint16_t code(std::byte byte) const { return codes_[std::to_integer<unsigned>(byte)]; }

  private:
    static std::uint16_t reversed(std::uint32_t code, unsigned bits) {
        std::uint32_t out = 0;
        for (unsigned i = 0; i < bits; ++i) out |= (code >> i & 1U) << (bits - 1 - i);
        return static_cast<std::uint16_t>(out);
    }

    /// Counts how many codes have each length: those of the Huffman code, after which too long ones are shortened.
    static void count_lengths(std::size_t rare, std::size_t size, std::uint16_t* of_length) {
        constexpr std::size_t leaves = 256, nodes = 2 * leaves - 1;
        std::uint64_t weights[nodes];
        std::uint16_t parents[nodes], depths[nodes];
        weigh(rare, size, weights);
        std::size_t leaf = 0, inner = leaves;  // both queues ascend
        for (std::size_t node = leaves; node < nodes; ++node) {
            weights[node] = 0;
            for (int child = 0; child < 2; ++child) {
                const bool is_leaf = leaf < leaves && (inner == node || weights[leaf] <= weights[inner]);
                const std::size_t least = is_leaf ? leaf++ : inner++;
                weights[node] += weights[least];
                parents[least] = static_cast<std::uint16_t>(node);
            }
        }
        depths[nodes - 1] = 0;
        std::size_t taken = 0;  // code space in use, in codes of length `longest`
        for (std::size_t node = nodes - 1; node-- > 0;) {
            depths[node] = static_cast<std::uint16_t>(depths[parents[node]] + 1);
            if (node >= leaves) continue;
            const unsigned bits = std::min<unsigned>(depths[node], longest);
            ++of_length[bits];
            taken += std::size_t{1} << (longest - bits);
        }
        for (; taken > std::size_t{1} << longest; --taken) {  // pairs a code of length `longest` with a shorter one
            unsigned bits = longest - 1;
            while (of_length[bits] == 0) --bits;
            --of_length[longest];
            --of_length[bits];
            of_length[bits + 1] = static_cast<std::uint16_t>(of_length[bits + 1] + 2);
        }
    }

    /// Computes 2^31 times the chance of each byte, in ascending order. No chance is taken to be below 2^-12, so that
    /// few codes must be shortened: at densities from 6 % on, the coded size is then that of the best code of at most
    /// 12 bits.
    static void weigh(std::size_t rare, std::size_t size, std::uint64_t* weights) {
        const auto scale = std::max(static_cast<unsigned>(std::bit_width(size)), 32U) - 32;
        constexpr std::uint64_t one = 1U << 16, one_in_longest = std::uint64_t{1} << (31 - longest);
        const std::uint64_t p = std::max<std::uint64_t>((std::uint64_t{rare >> scale} << 16) / (size >> scale), 1);
        for (std::size_t ones = 0, rank = 0; ones <= 8; ++ones) {
            std::uint64_t weight = std::uint64_t{1} << 31;
            for (std::size_t bit = 0; bit < 8; ++bit) weight = weight * (bit < ones ? p : one - p) >> 16;
            for (; rank < 256 && static_cast<std::size_t>(std::popcount(bytes_by_ones.bytes[rank])) == ones; ++rank)
                weights[255 - rank] = std::max(weight, one_in_longest);
        }
    }

    std::uint8_t lengths_[256];
    std::uint16_t codes_[256];
};

/// Decoding table: for every value of the next 12 bits, the byte whose code they begin with, and the code's length.
/// 8 KiB.
class byte_table {
  public:
    explicit byte_table(const byte_code& code) {
        for (unsigned byte = 0; byte < 256; ++byte) {
            const unsigned bits = code.length(static_cast<std::byte>(byte));
            const auto entry = static_cast<std::uint16_t>(bits << 8 | byte);
            for (std::size_t next = code.code(static_cast<std::byte>(byte)); next < size;
                 next += std::size_t{1} << bits)
                entries_[next] = entry;
        }
    }
    unsigned operator[](std::uint64_t bits) const { return entries_[bits % size]; }

  private:
    static constexpr std::size_t size = std::size_t{1} << byte_code::longest;

    std::uint16_t entries_[size];
};

/// Writes bits, low ones first, and never beyond the end of its memory.
class bit_writer {
  public:
    bit_writer() = default;
    explicit bit_writer(byte_span out) : out_(out) {}

    /// Appends `bits` bits; at most 56 between two calls of `flush`.
    void put(std::uint64_t code, unsigned bits) {
        word_ |= code << held_;
        held_ += bits;
    }
    void flush() {
        if (out_.size() - at_ >= 8)
            store_little(out_.data() + at_, word_);
        else
            for (std::size_t i = 0; at_ + i < out_.size(); ++i) out_[at_ + i] = static_cast<std::byte>(word_ >> 8 * i);
        at_ += held_ / 8;
        word_ = word_ >> (held_ - held_ % 8);
        held_ %= 8;
    }

  private:
    byte_span out_;
    std::size_t at_ = 0;
    std::uint64_t word_ = 0;
    unsigned held_ = 0;  // at most 7 after a flush
};

/// Reads bits, low ones first. Beyond the end of its stream it reads the bytes that follow, and zeros beyond all bytes;
/// `used` tells whether it did.
class bit_reader {
  public:
    bit_reader() = default;
    bit_reader(byte_view all, std::size_t begin) : all_(all), begin_(begin), at_(begin) {}

    /// Refills the word: afterwards 56 bits can be read.
    void refill() {
        word_ |= next() << held_;
        at_ += (63 - held_) / 8;
        held_ |= 56;
    }
    std::uint64_t symbol(const byte_table& table) {
        unsigned entry = table[word_];
        load_alone(entry);
        word_ >>= entry >> 8;
        held_ -= entry >> 8;
        return entry & 255U;
    }
    /// Bits read so far.
    std::size_t used() const { return 8 * (at_ - begin_) - held_; }

  private:
    std::uint64_t next() const {
        if (all_.size() >= 8 && at_ <= all_.size() - 8) return load_little<std::uint64_t>(all_.data() + at_);
        std::byte padded[8] = {};
        if (at_ < all_.size()) std::memcpy(padded, all_.data() + at_, all_.size() - at_);
        return load_little<std::uint64_t>(padded);
    }

    byte_view all_;
    std::size_t begin_ = 0, at_ = 0;
    std::uint64_t word_ = 0;
    unsigned held_ = 0;
};

}}}  // namespace rill::RILL_ABI::kernel::detail
