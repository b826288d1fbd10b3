// A stretch of coordinates in which any number of sparse vectors are folded.
#pragma once

#include <rill/core/detail/elements.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/detail/pick.hpp>
#include <rill/kernel/detail/set_bits.hpp>
#include <rill/kernel/merge.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Coordinates of a tile: their values and marks fit the L2 cache. On Zen 4, with 8 vectors of 16M coordinates, half
/// and twice as many take up to 1.1 times as long.
inline constexpr std::size_t merge_tile = 32768;

/// A stretch of coordinates as a dense array, with a mark for each coordinate that is present. Marks are bytes, not
/// bits, because setting neighbouring bits one after the other would make each wait for the one before.
template <Element T>
struct tile {
    enum class mark : std::uint8_t { absent, present };
    static constexpr std::size_t group = 64;
    static constexpr std::size_t drained_at_once = 16 * group;

    T values[merge_tile];
    mark marks[merge_tile];

    /// Marks the first `extent` coordinates as absent.
    void clear(std::size_t extent) {
        rill::detail::fill_elements(marks, (extent + group - 1) / group * group, mark::absent);
    }

    /// Folds in the entries from `first` on that lie in the tile that begins at `base`. Returns the first entry beyond
    /// the tile.
    template <IndexType Index, class Fold>
    std::size_t put(sparse_view<T, Index> x, std::size_t first, Index base, Fold& fold) {
        const Index* const indices = x.indices.data();
        const T* const added = x.values.data();
        const std::size_t end = x.count();
        std::size_t j = first;
        for (; j < end; ++j) {
            const Index at = indices[j] - base;
            if (at >= merge_tile) break;
            const T value = added[j];
            const mark known = marks[at];
            marks[at] = mark::present;
            if constexpr (adds_freely<T, Fold>)
                values[at] = pick(static_cast<std::size_t>(known), fold(values[at], value), value);
            else
                values[at] = known == mark::present ? fold(values[at], value) : value;
        }
        return j;
    }

    /// Moves the entries present among the first `extent` coordinates to `out`, and marks them as absent.
    template <IndexType Index>
    void drain(Index base, std::size_t extent, sparse_sink<T, Index>& out) {
        for (std::size_t first = 0; first < extent; first += drained_at_once) {
            const std::size_t end = std::min(extent, first + drained_at_once);
            std::uint32_t places[drained_at_once + place_slack];
            std::size_t count = 0;
            for (std::size_t i = first; i < end; i += group)
                count += place_bits_native(take_marks(marks + i), static_cast<std::uint32_t>(i), places + count);
            Index* const indices = out.indices + out.count;
            T* const sums = out.values + out.count;
            for (std::size_t j = 0; j < count; ++j) indices[j] = static_cast<Index>(base + places[j]);
            for (std::size_t j = 0; j < count; ++j) sums[j] = values[places[j]];
            out.count += count;
        }
    }

    /// Returns the marks of a group as bits, the first mark lowest, and clears the marks.
    static std::uint64_t take_marks(mark* first) {
        std::uint64_t result = 0;
#if defined(__SSE2__)
        for (std::size_t i = 0; i < group / 16; ++i) {
            const __m128i sixteen = _mm_loadu_si128(reinterpret_cast<const __m128i*>(first + 16 * i));
            const int highest = _mm_movemask_epi8(_mm_slli_epi16(sixteen, 7));  // the lowest bits are now the highest
            result |= std::uint64_t{static_cast<unsigned>(highest)} << (16 * i);
        }
#else
        for (std::size_t i = 0; i < group / 8; ++i) {
            const auto eight = load_little<std::uint64_t>(first + 8 * i);  // the lowest bit of each byte
            result |= (eight * 0x0102040810204080U >> 56) << (8 * i);      // all of them in the product's highest
        }
#endif
        rill::detail::fill_elements(first, group, mark::absent);
        return result;
    }
};

}}}  // namespace rill::RILL_ABI::kernel::detail
