// One pass that keeps the few coordinates above a bound: the inner step of every selection.
#pragma once

#include <rill/core/config.hpp>
#include <rill/kernel/detail/compact_avx512.hpp>
#include <rill/kernel/little_endian.hpp>
#include <rill/kernel/magnitude.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace rill::inline RILL_ABI::kernel::detail {

/// Coordinates in ascending order, with their magnitudes. The arrays end `block` entries behind `capacity`, so that
/// appending needs no branch.
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

/// The first coordinates whose magnitude equals a bound; same room behind `capacity`.
template <IndexType Index>
struct tied {
    Index* indices = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;

    bool wanted() const { return count < capacity; }
};

/// What selections do with blocks of 64 entries. Where a step writes entries one after the other, as many places as the
/// block has may be overwritten.
struct portable_steps {
    /// Bit j: whether the magnitude of x[j] reaches `bound`.
    template <Element T>
    static std::uint64_t mask_at_least(const T* x, magnitude_key<T> bound) {
        if (!any_at_least<block>(x, bound)) return 0;
        alignas(64) std::uint8_t hits[block];  // one byte each: comparing and narrowing vectorises
        for (std::size_t j = 0; j < block; ++j) hits[j] = magnitude(x[j]) >= bound ? 1 : 0;
        std::uint64_t mask = 0;
        for (std::size_t j = 0; j < block; j += 8)  // the product has the lowest bit of byte i in bit 56 + i
            mask |= ((load_little<std::uint64_t>(hits + j) * 0x0102040810204080U) >> 56) << j;
        return mask;
    }

    /// Writes the coordinates of the bits of `mask`, counted from `first`, and their magnitudes.
    template <Element T, IndexType Index>
    static void append(std::uint64_t mask, const T* x, std::size_t first, Index* indices, magnitude_key<T>* keys) {
        constexpr std::size_t at_once = 4;  // more often than not there are no more, and the branch is foreseen
        constexpr std::uint64_t last = std::uint64_t{1} << (block - 1);
        for (; mask != 0; indices += at_once, keys += at_once)
            for (std::size_t i = 0; i < at_once; ++i, mask &= mask - 1) {
                const auto j = static_cast<std::size_t>(std::countr_zero(mask | last));
                indices[i] = static_cast<Index>(first + j);
                keys[i] = magnitude(x[j]);
            }
    }

    /// Writes those of 64 keys that are at most `high`, and returns their number.
    template <class Key>
    static std::size_t keep_at_most(const Key* keys, Key high, Key* to) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < block; ++j) {
            to[count] = keys[j];
            count += keys[j] <= high ? 1U : 0U;
        }
        return count;
    }

    /// Writes those of 64 indices whose keys reach `bound`, and returns their number.
    template <IndexType Index, class Key>
    static std::size_t keep_at_least(const Index* indices, const Key* keys, Key bound, Index* to) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < block; ++j) {
            to[count] = indices[j];
            count += keys[j] >= bound ? 1U : 0U;
        }
        return count;
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

/// Collects those of 64 coordinates whose magnitudes reach `bound`.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void collect_reaching(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& to) {
    if (const std::uint64_t hits = Steps::mask_at_least(x, bound)) append_hits<T, Index, Steps>(hits, x, first, to);
}

/// Collects those of 64 coordinates above `bound` and the first ties with it.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void collect_block(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
                   tied<Index>& ties) {
    if (!ties.wanted()) return collect_reaching<T, Index, Steps>(x, first, bound + 1, above);
    const std::uint64_t reached = Steps::mask_at_least(x, bound);
    if (reached == 0) return;
    const std::uint64_t larger = Steps::mask_at_least(x, bound + 1);
    append_ties(reached & ~larger, first, ties);
    append_hits<T, Index, Steps>(larger, x, first, above);
}

/// Collects the coordinates of `x` above `bound` and the first ties with it. False when `above` has no room for them.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
bool collect(std::span<const T> x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
             tied<Index>& ties) {
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) {
        collect_block<T, Index, Steps>(x.data() + i, first + i, bound, above, ties);
        if (above.count > above.capacity) return false;
    }
    for (; i < x.size(); ++i) append(magnitude(x[i]), first + i, bound, above, ties);
    return above.count <= above.capacity;
}

}  // namespace rill::inline RILL_ABI::kernel::detail
