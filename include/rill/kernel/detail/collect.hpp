// One pass that keeps the few coordinates above a bound: the inner step of every selection.
#pragma once

#include <rill/core/config.hpp>
#include <rill/kernel/detail/compact_avx512.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/magnitude.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Coordinates in ascending order, with their magnitudes. The arrays have room for `block` entries more than
/// `capacity`, so that appending needs no branch.
template <Element T, IndexType Index>
struct candidates {
    Index* indices = nullptr;
    magnitude_key<T>* keys = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;

    void append(std::size_t i, magnitude_key<T> key) {
        indices[count] = static_cast<Index>(i);
        keys[count++] = key;
    }
};

/// The first coordinates whose magnitude equals a bound. The array has room for `block` entries more than `capacity`.
template <IndexType Index>
struct tied {
    Index* indices = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;

    bool wanted() const { return count < capacity; }
};

/// The steps of a selection on blocks of 64 entries. A step that appends entries may overwrite as many places as a
/// block has.
class portable_steps {
  public:
    template <Element T>
    static bool any_at_least(const T* x, magnitude_key<T> bound) {
        return detail::any_at_least<block>(x, bound);
    }

    /// Returns a mask whose bit j says whether the magnitude of x[j] reaches `bound`.
    template <Element T>
    [[gnu::noinline]] static std::uint64_t mask_at_least(const T* x, magnitude_key<T> bound) {
        alignas(64) std::uint8_t hits[block];  // one byte each: comparing and narrowing vectorises
        for (std::size_t j = 0; j < block; ++j) hits[j] = magnitude(x[j]) >= bound ? 1 : 0;
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return ((lowest_bits(hits + 8 * I) << (8 * I)) | ...);
        }(std::make_index_sequence<block / 8>());
    }

    /// Nonzero if any magnitude reaches `bound`. The mask is computed from it by reading the block again: most blocks
    /// hold no large entry, so that a mask of every block would cost more than it saves.
    template <Element T>
    static std::uint64_t glance(const T* x, magnitude_key<T> bound) {
        return any_at_least(x, bound) ? 1U : 0U;
    }
    template <Element T>
    static std::uint64_t mask_after(std::uint64_t, const T* x, magnitude_key<T> bound) {
        return mask_at_least(x, bound);
    }

    /// Writes the coordinates of the bits of `mask`, counted from `first`, and their magnitudes.
    template <Element T, IndexType Index>
    static void append(std::uint64_t mask, const T* x, std::size_t first, Index* indices, magnitude_key<T>* keys) {
        if (mask == ~std::uint64_t{0}) return append_all(x, first, indices, keys);
        constexpr std::uint64_t last = std::uint64_t{1} << (block - 1);
        while (mask != 0) {
            unrolled([&](std::size_t i) {
                const auto j = static_cast<std::size_t>(std::countr_zero(mask | last));
                indices[i] = static_cast<Index>(first + j);
                keys[i] = magnitude(x[j]);
                mask &= mask - 1;
            });
            indices += at_once;
            keys += at_once;
        }
    }

    /// Writes those of 64 keys that are at most `high`; returns their number.
    template <class Key>
    static std::size_t keep_at_most(const Key* keys, Key high, Key* to) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < block; j += at_once)
            unrolled([&](std::size_t i) {
                to[count] = keys[j + i];
                count += keys[j + i] <= high ? 1U : 0U;
            });
        return count;
    }

    /// Writes those of 64 indices whose keys reach `bound`; returns their number.
    template <IndexType Index, class Key>
    static std::size_t keep_at_least(const Index* indices, const Key* keys, Key bound, Index* to) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < block; j += at_once)
            unrolled([&](std::size_t i) {
                to[count] = indices[j + i];
                count += keys[j + i] >= bound ? 1U : 0U;
            });
        return count;
    }

    /// Entries that `append` writes at a time. With 8, selecting 1 % of 16M floats takes 1.1 times as long, and 10 %
    /// takes no less. One step of 4 is faster than compacting the block with AVX-512.
    static constexpr std::size_t at_once = 4;

  private:
    template <Element T, IndexType Index>
    static void append_all(const T* x, std::size_t first, Index* indices, magnitude_key<T>* keys) {
        for (std::size_t j = 0; j < block; ++j) indices[j] = static_cast<Index>(first + j);
        for (std::size_t j = 0; j < block; ++j) keys[j] = magnitude(x[j]);
    }

    /// Unrolls by hand, because compilers unroll no loop at -O2.
    template <class Step>
    static void unrolled(Step&& step) {
        [&]<std::size_t... I>(std::index_sequence<I...>) { (step(I), ...); }(std::make_index_sequence<at_once>());
    }

    /// Returns the lowest bits of eight bytes; that of byte i becomes bit i. No other bit of a byte is set.
    static std::uint64_t lowest_bits(const std::uint8_t* eight) {
        return (load_little<std::uint64_t>(eight) * 0x0102040810204080U) >> 56;
    }
};

#if defined(RILL_DETAIL_AVX512)
template <Element T, IndexType Index>
using selection_steps =
    std::conditional_t<std::same_as<T, float> && std::same_as<Index, std::uint32_t>, avx512_steps, portable_steps>;
#else
template <Element T, IndexType Index>
using selection_steps = portable_steps;
#endif

/// Entries examined before any is collected: few enough to stay in the first-level cache.
inline constexpr std::size_t collected_at_once = 16 * block;

template <Element T, IndexType Index>
void append(magnitude_key<T> key, std::size_t i, magnitude_key<T> bound, candidates<T, Index>& above,
            tied<Index>& ties) {
    if (key > bound) {
        above.append(i, key);
    } else if (key == bound && ties.wanted()) {
        ties.indices[ties.count++] = static_cast<Index>(i);
    }
}

template <IndexType Index>
void append_ties(std::uint64_t mask, std::size_t first, tied<Index>& ties) {
    for (; mask != 0 && ties.wanted(); mask &= mask - 1)
        ties.indices[ties.count++] = static_cast<Index>(first + static_cast<std::size_t>(std::countr_zero(mask)));
}

template <Element T, IndexType Index, class Steps>
void append_hits(std::uint64_t hits, const T* x, std::size_t first, candidates<T, Index>& to) {
    Steps::append(hits, x, first, to.indices + to.count, to.keys + to.count);
    to.count += static_cast<std::size_t>(std::popcount(hits));
}

/// Collects the coordinates of one block of 64 whose magnitudes reach `bound`.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void collect_reaching(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& to) {
    if (Steps::any_at_least(x, bound)) append_hits<T, Index, Steps>(Steps::mask_at_least(x, bound), x, first, to);
}

/// Collects the coordinates of one block of 64 that are above `bound`, and the first ties with it.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void collect_block(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
                   tied<Index>& ties) {
    if (!ties.wanted()) return collect_reaching<T, Index, Steps>(x, first, bound + 1, above);
    if (!Steps::any_at_least(x, bound)) return;
    const std::uint64_t larger = Steps::mask_at_least(x, bound + 1);
    append_ties(Steps::mask_at_least(x, bound) & ~larger, first, ties);
    append_hits<T, Index, Steps>(larger, x, first, above);
}

/// Collects the entries of 16 blocks whose magnitudes reach `bound`, for inputs in which few do; stops when `to` is
/// full. Which blocks hold such entries is unpredictable, so that a branch for each block costs more than a list of
/// blocks, which is made without branches.
template <Element T, IndexType Index, class Steps>
void collect_stretch(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& to) {
    constexpr std::size_t blocks = collected_at_once / block;
    std::uint64_t glances[blocks];
    std::size_t hit[blocks], hits = 0;
    for (std::size_t b = 0; b < blocks; ++b) glances[b] = Steps::glance(x + b * block, bound);
    for (std::size_t b = 0; b < blocks; ++b) {
        hit[hits] = b;
        hits += glances[b] != 0 ? 1U : 0U;
    }
    for (std::size_t h = 0; h < hits && to.count <= to.capacity; ++h) {
        const std::size_t i = hit[h] * block;
        append_hits<T, Index, portable_steps>(Steps::mask_after(glances[hit[h]], x + i, bound), x + i, first + i, to);
    }
}

/// Collects the coordinates of `x` above `bound` and the first ties with it. Returns false if `above` has no room for
/// them.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
bool collect(std::span<const T> x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
             tied<Index>& ties) {
    const T* const at = x.data();
    const auto has_room = [&] { return above.count <= above.capacity; };
    const bool few_of_each = above.capacity < x.size() / block * portable_steps::at_once;
    std::size_t i = 0;
    for (; ties.wanted() && i + block <= x.size() && has_room(); i += block)
        collect_block<T, Index, Steps>(at + i, first + i, bound, above, ties);
    for (; few_of_each && i + collected_at_once <= x.size() && has_room(); i += collected_at_once)
        collect_stretch<T, Index, Steps>(at + i, first + i, bound + 1, above);
    for (; i + block <= x.size() && has_room(); i += block)
        collect_block<T, Index, Steps>(at + i, first + i, bound, above, ties);
    if (!has_room()) return false;
    for (; i < x.size(); ++i) append(magnitude(x[i]), first + i, bound, above, ties);
    return has_room();
}

}}}  // namespace rill::RILL_ABI::kernel::detail
