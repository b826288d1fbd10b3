#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// A summand of a coordinate.
template <Element T, IndexType Index>
struct index_value {
    Index index;
    T value;
};

namespace detail {

/// Sorts by one byte of the index, keeps the order of equals, and returns whether anything was moved to `to`.
template <class Entry>
bool sort_by_byte(std::span<const Entry> from, std::span<Entry> to, unsigned shift,
                  std::array<std::size_t, 256>& count) {
    std::size_t begin = 0;
    for (std::size_t& each : count) {
        if (each == from.size()) return false;  // all have this byte in common
        begin += std::exchange(each, begin);
    }
    for (const Entry& entry : from) to[count[(entry.index >> shift) & 255U]++] = entry;
    return true;
}

}  // namespace detail

/// Adds up what belongs to one coordinate, in the order of `entries`, and writes the coordinates that occur, ascending,
/// with their sums. Returns how many there are.
///
/// `indices`, `values`: room for as many as there are entries. `entries` are lost; `scratch` grows to their number.
/// Cost: a radix sort by bytes: at most sizeof(Index) + 2 passes over the entries, however large their indices are.
template <Element T, IndexType Index>
std::size_t sum_by_index(std::span<index_value<T, Index>> entries, aligned_vector<index_value<T, Index>>& scratch,
                         std::span<Index> indices, std::span<T> values) {
    RILL_EXPECTS(indices.size() >= entries.size() && values.size() >= entries.size(),
                 "sum_by_index: room for each entry");
    if (entries.empty()) return 0;
    std::array<std::array<std::size_t, 256>, sizeof(Index)> counts{};
    for (const auto& entry : entries)
        for (unsigned byte = 0; byte < sizeof(Index); ++byte) ++counts[byte][(entry.index >> (8 * byte)) & 255U];
    if (scratch.size() < entries.size()) scratch.resize(entries.size());
    std::span<index_value<T, Index>> from = entries, to = span_of(scratch).first(entries.size());
    for (unsigned byte = 0; byte < sizeof(Index); ++byte)
        if (detail::sort_by_byte(std::span<const index_value<T, Index>>(from), to, 8 * byte, counts[byte]))
            std::swap(from, to);
    std::size_t last = 0;
    indices[0] = from[0].index;
    values[0] = from[0].value;
    for (const auto& entry : from.subspan(1)) {
        if (entry.index == indices[last]) {
            values[last] += entry.value;
        } else {
            indices[++last] = entry.index;
            values[last] = entry.value;
        }
    }
    return last + 1;
}

}}}  // namespace rill::RILL_ABI::kernel
