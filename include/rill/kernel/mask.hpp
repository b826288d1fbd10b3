// Random masks, which need no indices on the wire: every rank derives the same mask from a shared key.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/loop.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Draws how many coordinates to skip before the next selected one, when each is selected with the same chance.
///
/// The geometric distribution is inverted by a table of integers, so that skips are the same on every machine. A skip
/// beyond the table is drawn in pieces, because the distribution has no memory. Size: 12 KiB.
class geometric_skips {
  public:
    static constexpr std::size_t table = 1024;

    constexpr explicit geometric_skips(double density) : density_(density) {
        RILL_EXPECTS(density >= 0 && density <= 1, "geometric_skips: the density is a probability");
        if (density <= 0 || density >= 1) return;
        const std::uint64_t miss = ~static_cast<std::uint64_t>(density * 0x1p64) + 1;  // 2^64 (1 - density)
        std::uint64_t misses = miss;                                                   // 2^64 (1 - density)^(g + 1)
        for (std::size_t g = 0; g < table; ++g) {
            last_[g] = static_cast<std::uint32_t>((~misses + 1) >> 32) - 1;
            misses = multiply_high(misses, miss);
        }
        for (std::size_t g = table; g < last_.size(); ++g) last_[g] = ~std::uint32_t{0};
        std::size_t g = 0;
        for (std::size_t top = 0; top < guide_size; ++top) {
            while (g < table && last_[g] + 1 <= top << guide_shift) ++g;
            guide_[top] = static_cast<std::uint16_t>(g);
        }
    }

    constexpr double density() const { return density_; }

    /// Returns the skip for 32 random bits. The result `table` means: skip that many coordinates, select none, and draw
    /// again.
    constexpr std::size_t skip(std::uint32_t bits) const {
        std::size_t g = guide_[bits >> guide_shift];
        g += bits > last_[g] ? 1U : 0U;  // two branchless steps: mostly they suffice
        g += bits > last_[g] ? 1U : 0U;
        while (bits > last_[g]) ++g;
        return g;
    }

  private:
    static constexpr unsigned guide_shift = 20;
    static constexpr std::size_t guide_size = std::size_t{1} << (32 - guide_shift);

    double density_;
    /// last_[g] is the largest value of the 32 random bits that skips at most g coordinates: 2^32 times the chance of
    /// such a skip, minus one. last_[table] is the largest of all values. Where that chance is below 2^-32, last_[g]
    /// wraps around, and `guide_` starts beyond g.
    std::array<std::uint32_t, table + 1> last_{};
    std::array<std::uint16_t, guide_size> guide_{};
};

namespace detail {

/// Length in coordinates of a chain of skips. Chains start at fixed coordinates, so that the mask of a segment is the
/// mask of the whole, restricted to it.
inline constexpr std::size_t mask_block = std::size_t{1} << 16;

/// Writes the selected coordinates of `part`, which lies in the mask block at `block_begin`, and returns their number.
/// `out` has room for all of `part`.
template <IndexType Index>
std::size_t mask_in_block(random_key key, const geometric_skips& skips, std::size_t block_begin, segment part,
                          Index* out) {
    const random_key own = key.derive(block_begin / mask_block);
    const auto low = static_cast<std::uint32_t>(own.value), high = static_cast<std::uint32_t>(own.value >> 32);
    const std::size_t begin = part.begin - block_begin, end = part.end - block_begin;
    std::size_t count = 0, at = 0, selected = 0;
    for (std::uint32_t drawn = 0; at < end; drawn += block) {
        std::uint32_t draws[block];
        for (std::uint32_t j = 0; j < block; ++j) draws[j] = counter_bits(low, high, drawn + j);
        for (std::uint32_t& draw : draws) draw = static_cast<std::uint32_t>(skips.skip(draw));
        for (std::size_t j = 0; j < block && at < end; ++j) {
            at += draws[j];
            selected = draws[j] != geometric_skips::table ? 1 : 0;
            out[count] = static_cast<Index>(block_begin + at);
            count = at < begin ? 0 : count + selected;
            at += selected;
        }
    }
    return count - (at > end ? selected : 0);  // the last one may lie beyond the end
}

}  // namespace detail

/// Appends to `indices` the coordinates of `universe` that the mask of this key selects, in ascending order, and
/// returns their number. Each coordinate is selected with the chance `skips.density()`, independently.
///
/// Cost: a draw for each selected coordinate, and one for every 1024 skipped. Whether a coordinate is selected depends
/// on key, density and coordinate alone: the mask of a segment is the mask of the whole, restricted to it.
template <IndexType Index>
std::size_t random_mask(random_key key, const geometric_skips& skips, segment universe,
                        aligned_vector<Index>& indices) {
    using detail::mask_block;
    RILL_EXPECTS(universe.empty() || universe.end - 1 <= static_cast<Index>(-1),
                 "random_mask: the index type cannot number the universe");
    const std::size_t before = indices.size();
    if (skips.density() <= 0) return 0;
    std::size_t count = before;
    for (std::size_t begin = universe.begin; begin < universe.end;) {
        const std::size_t block_begin = begin / mask_block * mask_block;
        const std::size_t end = universe.end - block_begin > mask_block ? block_begin + mask_block : universe.end;
        if (indices.size() - count < end - begin) indices.resize(std::max(2 * count, count + (end - begin)));
        if (skips.density() >= 1)
            for (std::size_t i = begin; i < end; ++i) indices[count++] = static_cast<Index>(i);
        else
            count += detail::mask_in_block(key, skips, block_begin, {begin, end}, indices.data() + count);
        begin = end;
    }
    indices.resize(count);
    return count - before;
}

}}}  // namespace rill::RILL_ABI::kernel
