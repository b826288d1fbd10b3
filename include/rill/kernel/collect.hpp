// One pass that keeps the few coordinates above a bound: the inner step of every selection.
#pragma once

#include <rill/kernel/little_endian.hpp>
#include <rill/kernel/magnitude.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rill::inline RILL_ABI::kernel::detail {

/// Coordinates in ascending order, with their magnitudes. The arrays end `block` entries behind `capacity`, so that
/// appending needs no branch.
template <Element T, IndexType Index>
struct candidates {
    Index* indices = nullptr;
    magnitude_key<T>* keys = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;
};

/// The first coordinates whose magnitude equals a bound; same room behind `capacity`.
template <IndexType Index>
struct tied {
    Index* indices = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;

    bool wanted() const { return count < capacity; }
};

template <Element T, IndexType Index>
void append(magnitude_key<T> key, std::size_t i, magnitude_key<T> bound, candidates<T, Index>& above,
            tied<Index>& ties) {
    if (key > bound) {
        above.indices[above.count] = static_cast<Index>(i);
        above.keys[above.count++] = key;
    } else if (key == bound && ties.wanted()) {
        ties.indices[ties.count++] = static_cast<Index>(i);
    }
}

template <Element T, IndexType Index>
void collect_block(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
                   tied<Index>& ties) {
    const magnitude_key<T> reach = ties.wanted() ? bound : bound + 1;
    if (!any_at_least<block>(x, reach)) return;
    alignas(64) std::uint8_t hits[block];  // one byte each: comparing and narrowing vectorises, gathering bits does not
    for (std::size_t j = 0; j < block; ++j) hits[j] = magnitude(x[j]) >= reach ? 1 : 0;
    for (std::size_t j = 0; j < block; j += 8) {
        for (auto eight = load_little<std::uint64_t>(hits + j); eight != 0; eight &= eight - 1) {
            const std::size_t i = j + static_cast<std::size_t>(std::countr_zero(eight)) / 8;
            append(magnitude(x[i]), first + i, bound, above, ties);
        }
    }
}

/// Collects the coordinates of `x` above `bound` and the first ties with it. False when `above` has no room for them.
template <Element T, IndexType Index>
bool collect(std::span<const T> x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
             tied<Index>& ties) {
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) {
        collect_block(x.data() + i, first + i, bound, above, ties);
        if (above.count > above.capacity) return false;
    }
    for (; i < x.size(); ++i) append(magnitude(x[i]), first + i, bound, above, ties);
    return above.count <= above.capacity;
}

}  // namespace rill::inline RILL_ABI::kernel::detail
