#pragma once

#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// The first position in `[first, last)` of ascending indices whose index is not below `bound`; `last` if there is
/// none.
template <IndexType Index>
constexpr std::size_t first_not_below(const Index* indices, std::size_t first, std::size_t last, std::uint64_t bound) {
    while (first < last) {
        const std::size_t middle = first + (last - first) / 2;
        if (indices[middle] < bound)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}}  // namespace rill::RILL_ABI
