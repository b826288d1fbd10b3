#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel {

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

/// Sorts by `index`, a member of the entries; equals stay in order. Returns where the sorted entries lie: in the memory
/// of `entries` or in `scratch`, which grows to their number.
///
/// Cost: a radix sort by bytes: at most sizeof(index) + 1 passes over the entries, however large the indices are.
template <class Entry>
std::span<const Entry> sort_by_index(std::span<Entry> entries, aligned_vector<Entry>& scratch) {
    constexpr unsigned bytes = sizeof(Entry::index);
    std::array<std::array<std::size_t, 256>, bytes> counts{};
    for (const Entry& entry : entries)
        for (unsigned byte = 0; byte < bytes; ++byte) ++counts[byte][(entry.index >> (8 * byte)) & 255U];
    if (scratch.size() < entries.size()) scratch.resize(entries.size());
    std::span<Entry> from = entries, to = span_of(scratch).first(entries.size());
    for (unsigned byte = 0; byte < bytes; ++byte)
        if (detail::sort_by_byte(std::span<const Entry>(from), to, 8 * byte, counts[byte])) std::swap(from, to);
    return from;
}

}}}  // namespace rill::RILL_ABI::kernel
