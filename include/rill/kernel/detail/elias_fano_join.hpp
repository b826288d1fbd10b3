// The inner loop of Elias-Fano decoding: joins the two parts of entries, a block at a time.
#pragma once

#include <rill/core/config.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/loop.hpp>
#include <rill/kernel/detail/set_bits.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Returns entry number `i` of `width` < 64 bits. Reads up to 8 bytes beyond the entry.
template <class Word>
Word low_bits(const std::byte* packed, std::size_t i, unsigned width) {
    const std::size_t bit = i * width;
    const std::byte* at = packed + bit / 8;
    const unsigned shift = bit % 8;
    auto word = load_little<std::uint64_t>(at);
    load_alone(word);
    word >>= shift;
    if constexpr (sizeof(Word) == 8)
        if (width + shift > 64) word |= std::to_integer<std::uint64_t>(at[8]) << (64 - shift);
    return static_cast<Word>(word & ((std::uint64_t{1} << width) - 1));
}

/// The portable join. `Word` holds every coordinate, counted from the first of the universe.
template <class Word>
class elias_fano_join {
  public:
    explicit elias_fano_join(unsigned width) : width_(width) {}

    /// Writes the places of the set bits of a word of the upper part, whose lowest bit has the number `first`; see
    /// `place_bits`.
    static std::size_t place(std::uint64_t word, Word first, Word* places) { return place_bits(word, first, places); }

    /// Writes a block of values `base + i + v(i)` from i = `first` on, and checks whether the first `count` of these v
    /// descend. `base` does not change between calls. `places` are the places of their bits in the upper part. `low`
    /// can be read 16 bytes beyond the block, or 8 if the width is 0.
    void operator()(const Word* places, const std::byte* low, Word first, Word base, Word* out,
                    std::size_t count = block) {
        Word v[block + 1];
        v[0] = last_;
        for (std::size_t j = 0; j < block; ++j) v[j + 1] = low_bits<Word>(low, j, width_);
        for (std::size_t j = 0; j < block; ++j)
            v[j + 1] |= static_cast<Word>((places[j] - first - static_cast<Word>(j)) << width_);
        Word descents = 0;
        for (std::size_t j = 0; j < block; ++j) descents |= v[j + 1] < v[j] && j < count ? Word{1} : Word{0};
        for (std::size_t j = 0; j < block; ++j) out[j] = base + first + static_cast<Word>(j) + v[j + 1];
        descends_ = descends_ || descents != 0;
        last_ = v[count];
    }

    bool descends() const { return descends_; }
    /// The last v(i) that was joined.
    Word last() const { return last_; }

  private:
    unsigned width_;
    Word last_ = 0;
    bool descends_ = false;
};

}}}  // namespace rill::RILL_ABI::kernel::detail
