#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/sort_by_index.hpp>

#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// A summand of a coordinate.
template <Element T, IndexType Index>
struct index_value {
    Index index;
    T value;
};

/// Adds up what belongs to one coordinate, in the order of `entries`, and writes the coordinates that occur, ascending,
/// with their sums, which begin at 0, so that no sum is -0. Returns how many there are.
///
/// `indices`, `values`: room for as many as there are entries. `entries` are lost. Cost: `sort_by_index`, and a pass.
template <Element T, IndexType Index>
std::size_t sum_by_index(std::span<index_value<T, Index>> entries, aligned_vector<index_value<T, Index>>& scratch,
                         std::span<Index> indices, std::span<T> values) {
    RILL_EXPECTS(indices.size() >= entries.size() && values.size() >= entries.size(),
                 "sum_by_index: room for each entry");
    if (entries.empty()) return 0;
    const auto sorted = sort_by_index(entries, scratch);
    std::size_t last = 0;
    indices[0] = sorted[0].index;
    values[0] = T{} + sorted[0].value;
    for (const auto& entry : sorted.subspan(1)) {
        if (entry.index == indices[last]) {
            values[last] += entry.value;
        } else {
            indices[++last] = entry.index;
            values[last] = T{} + entry.value;
        }
    }
    return last + 1;
}

}}}  // namespace rill::RILL_ABI::kernel
