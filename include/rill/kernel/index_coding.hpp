// Dispatch to the index coding whose number a message carries.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/error.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/index_bitmap.hpp>
#include <rill/kernel/index_elias_fano.hpp>
#include <rill/kernel/index_gaps.hpp>
#include <rill/kernel/index_huffman.hpp>
#include <rill/kernel/index_raw.hpp>
#include <rill/kernel/index_rows.hpp>

#include <cstddef>
#include <initializer_list>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_coding(index_coding coding) {
    const bool is_known = is_in_frames(coding) && coding != index_coding::dense;
    throw protocol_error(text_of({"number ", static_cast<unsigned>(coding),
                                  is_known ? " is a coding of indices that was not due" : " is no coding of indices"}));
}

/// Calls `visit` with an object of the coding's type, whose rows have `row` entries; throws `protocol_error` for a
/// number that is no coding of indices, or none of the set.
template <coding_set Among, class Visit>
auto with_coding(index_coding coding, std::size_t row, Visit visit) {
    switch (coding) {
        case index_coding::raw: return visit(raw_indices{});
        case index_coding::packed_gaps:
            if constexpr (Among.has(index_coding::packed_gaps)) return visit(kernel::packed_gaps{});
            break;
        case index_coding::bitmap:
            if constexpr (Among.has(index_coding::bitmap)) return visit(index_bitmap{});
            break;
        case index_coding::elias_fano:
            if constexpr (Among.has(index_coding::elias_fano)) return visit(kernel::elias_fano{});
            break;
        case index_coding::huffman:
            if constexpr (Among.has(index_coding::huffman)) return visit(huffman_bitmap{});
            break;
        case index_coding::whole_rows:
            if constexpr (Among.has(index_coding::whole_rows)) return visit(kernel::whole_rows{row});
            break;
        case index_coding::dense:
        case index_coding::smallest: break;
    }
    refuse_coding(coding);
}

}  // namespace detail

/// Returns how many bytes `encode_indices` writes. `row`, here and below: the entries of a row, where the coding is
/// `whole_rows`; it throws `invalid_value` if a row is not whole. Cost: constant, except for packed gaps (a pass over
/// the indices), the Huffman coding (a pass over the parts of the bitmap in which a bit is set) and whole rows (a step
/// for each).
template <IndexType Index, coding_set Among = coding_set{}>
std::size_t encoded_index_bytes(index_coding coding, std::span<const Index> indices, segment universe,
                                std::size_t row = 1) {
    return detail::with_coding<Among>(coding, row, [&](auto c) { return c.encoded_size(indices, universe); });
}

/// Writes strictly ascending indices inside `universe`; returns the bytes written.
template <IndexType Index, coding_set Among = coding_set{}>
std::size_t encode_indices(index_coding coding, std::span<const Index> indices, segment universe, byte_span out,
                           std::size_t row = 1) {
    return detail::with_coding<Among>(coding, row, [&](auto c) { return c.encode(indices, universe, out); });
}

/// Throws `protocol_error` when `bytes` cannot hold `count` indices. A receiver calls it before it allocates room for
/// them: after the check, `count` is at most 128 for each byte received, of whole rows at most 8 rows.
template <IndexType Index, coding_set Among = coding_set{}>
void check_index_count(index_coding coding, byte_view bytes, std::size_t count, segment universe, std::size_t row = 1) {
    detail::with_coding<Among>(coding, row, [&](auto c) { c.template check_count<Index>(bytes, count, universe); });
}

/// Reads `count` indices into the front of `out`. Validates all of `bytes`: the indices ascend strictly and lie inside
/// `universe`. Otherwise throws a `protocol_error` that names the defect, and `out` is unspecified. Allocates nothing.
template <IndexType Index, coding_set Among = coding_set{}>
void decode_indices(index_coding coding, byte_view bytes, std::size_t count, segment universe, std::span<Index> out,
                    std::size_t row = 1) {
    detail::with_coding<Among>(coding, row, [&](auto c) { c.decode(bytes, count, universe, out); });
}

/// Returns the coding that needs the fewest bytes; of equal ones, the one that decodes fastest. Cost: a pass over the
/// indices and, where the Huffman coding could be the smallest (from a density of 2 % on), a pass over the bitmap.
template <IndexType Index>
index_coding smallest_index_coding(std::span<const Index> indices, segment universe) {
    index_coding best = index_coding::raw;
    std::size_t least = encoded_index_bytes(best, indices, universe);
    for (const auto coding : {index_coding::bitmap, index_coding::elias_fano, index_coding::packed_gaps}) {
        const std::size_t size = encoded_index_bytes(coding, indices, universe);
        if (size >= least) continue;
        best = coding;
        least = size;
    }
    if (huffman_bitmap::least_size(indices.size(), universe) < least &&
        huffman_bitmap::least_coded_size(indices.size(), universe) < least &&
        encoded_index_bytes(index_coding::huffman, indices, universe) < least)
        best = index_coding::huffman;
    return best;
}

}}}  // namespace rill::RILL_ABI::kernel
