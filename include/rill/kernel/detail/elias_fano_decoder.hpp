// Decoding the two parts of an Elias-Fano code.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/elias_fano_avx2.hpp>
#include <rill/kernel/detail/elias_fano_avx512.hpp>
#include <rill/kernel/detail/elias_fano_join.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/detail/set_bits.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// The sizes of the two parts of an Elias-Fano code of n indices in a universe of `size` coordinates, n <= size.
struct elias_fano_layout {
    std::size_t count, greatest;  ///< number of the values v(i); the largest that one can be
    unsigned width = 0;           ///< bits of each value in the lower part
    std::size_t low_bytes, upper_bits, upper_bytes;

    elias_fano_layout(std::size_t n, std::size_t size) : count(n), greatest(n == 0 ? 0 : size - n) {
        if (n != 0 && greatest / n != 0) width = static_cast<unsigned>(std::bit_width(greatest / n)) - 1;
        low_bytes = bytes_for_bits(n * width);  // n << width <= size: nothing overflows
        upper_bits = n + (greatest >> width);
        upper_bytes = bytes_for_bits(upper_bits);
    }
    std::size_t bytes() const { return low_bytes + upper_bytes; }
};

/// The inner loops that run on any machine.
struct portable_elias_fano {
    template <class Word>
    using join = elias_fano_join<Word>;
};

#if defined(RILL_DETAIL_AVX512) || defined(__AVX2__)
#if defined(RILL_DETAIL_AVX512)
using elias_fano_join_native = elias_fano_join_avx512;
#else
using elias_fano_join_native = elias_fano_join_avx2;
#endif
/// The fastest inner loops that this build's instruction set allows.
struct native_elias_fano {
    template <class Word>
    using join = std::conditional_t<sizeof(Word) == 4, elias_fano_join_native, elias_fano_join<Word>>;
};
#else
using native_elias_fano = portable_elias_fano;
#endif

/// Alternates between two phases: it writes the places of the set bits of the upper part until some blocks are full,
/// and then joins these with their low bits. `Word` holds every coordinate, counted from the first of the universe.
template <class Loops, class Word, IndexType Index>
class elias_fano_decoder {
  public:
    elias_fano_decoder(const elias_fano_layout& layout, byte_view bytes, std::size_t begin, Index* out)
        : layout_(layout),
          low_(bytes.data()),
          upper_(bytes.subspan(layout.low_bytes)),
          begin_(begin),
          base_(is_direct ? static_cast<Word>(begin) : Word{0}),
          out_(out),
          join_(layout.width) {}

    /// Decodes. Returns false if no encoder writes such bytes. The caller has checked sizes and padding.
    bool run() {
        for (std::size_t at = 0; at < upper_.size();) {
            at = place_many(at);
            if (held_ < at_once) continue;
            if (layout_.count - done_ < held_) return false;
            join_blocks();
        }
        if (layout_.count - done_ != held_) return false;
        join_blocks();
        if (held_ > 0) join_rest();
        return !join_.descends() && join_.last() <= layout_.greatest;
    }

  private:
    static constexpr std::size_t at_once = 8 * block;
    static constexpr bool is_direct = sizeof(Index) == sizeof(Word);

    /// Writes the places of set bits, from byte `at` of the upper part on, until enough are held. Returns the byte
    /// where it stopped.
    std::size_t place_many(std::size_t at) {
        const byte_view upper = upper_;  // local copies: the compiler must assume that writes may alias members
        std::size_t held = held_;
        for (; at < upper.size() && held < at_once; at += 8)
            held += join_.place(word_at(upper, at), static_cast<Word>(8 * at), places_ + held);
        held_ = held;
        return at;
    }

    void join_blocks() {
        std::size_t joined = 0;
        for (; held_ - joined >= block; joined += block) {
            if constexpr (is_direct) {
                join_(places_ + joined, low_, static_cast<Word>(done_), base_, out_ + done_);
            } else {
                Word offsets[block];
                join_(places_ + joined, low_, static_cast<Word>(done_), base_, offsets);
                for (std::size_t j = 0; j < block; ++j) out_[done_ + j] = begin_ + offsets[j];
            }
            low_ += block / 8 * layout_.width;
            done_ += block;
        }
        if (joined == 0) return;
        std::memcpy(places_, places_ + joined, block * sizeof(Word));
        held_ -= joined;
    }

    void join_rest() {
        std::byte padded[block * sizeof(Word) + 16] = {};
        std::memcpy(padded, low_, bytes_for_bits(held_ * layout_.width));
        Word offsets[block];
        join_(places_, padded, static_cast<Word>(done_), base_, offsets, held_);
        for (std::size_t j = 0; j < held_; ++j)
            out_[done_ + j] = is_direct ? static_cast<Index>(offsets[j]) : static_cast<Index>(begin_ + offsets[j]);
    }

    const elias_fano_layout& layout_;
    const std::byte* low_;  // low bits of the next block; at least 128 upper bits are behind those of 64 entries
    byte_view upper_;
    std::size_t begin_;
    Word base_;  // added to joined values: the first of the universe, or 0
    Index* out_;
    typename Loops::template join<Word> join_;
    std::size_t held_ = 0, done_ = 0;  // places held; entries joined before them
    Word places_[at_once + 64 + place_slack];
};

/// Decodes with the narrowest words that hold the universe.
template <class Loops, IndexType Index>
bool decode_elias_fano(const elias_fano_layout& layout, byte_view bytes, std::size_t begin, Index* out) {
    if constexpr (sizeof(Index) == 8)
        if (layout.greatest + layout.count - 1 > UINT32_MAX)
            return elias_fano_decoder<Loops, std::uint64_t, Index>(layout, bytes, begin, out).run();
    return elias_fano_decoder<Loops, std::uint32_t, Index>(layout, bytes, begin, out).run();
}

}}}  // namespace rill::RILL_ABI::kernel::detail
