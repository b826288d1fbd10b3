#pragma once

#include <rill/core/coding.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Index codings: policies that say how the indices of a sparse frame are written. All are lossless.

/// Four or eight bytes per index. If the values are raw too, frames are sent without a copy.
struct raw_indices {
    static constexpr const char* name = "raw_indices";
    static constexpr index_coding coding = index_coding::raw;
    friend constexpr bool operator==(raw_indices, raw_indices) = default;
};

/// Gaps between indices, bit-packed by blocks: about log2(1/density) + 3 bits per index.
struct packed_gaps {
    static constexpr const char* name = "packed_gaps";
    static constexpr index_coding coding = index_coding::packed_gaps;
    friend constexpr bool operator==(packed_gaps, packed_gaps) = default;
};

/// One bit per coordinate.
struct bitmap {
    static constexpr const char* name = "bitmap";
    static constexpr index_coding coding = index_coding::bitmap;
    friend constexpr bool operator==(bitmap, bitmap) = default;
};

/// Elias–Fano coding: about log2(1/density) + 2 bits per index; from a density of a third on, one bit per coordinate.
struct elias_fano {
    static constexpr const char* name = "elias_fano";
    static constexpr index_coding coding = index_coding::elias_fano;
    friend constexpr bool operator==(elias_fano, elias_fano) = default;
};

/// A bitmap with Huffman-coded bytes: from a density of a tenth on, near the entropy of random indices.
struct huffman_bitmap {
    static constexpr const char* name = "huffman_bitmap";
    static constexpr index_coding coding = index_coding::huffman;
    friend constexpr bool operator==(huffman_bitmap, huffman_bitmap) = default;
};

/// One index for each row of `columns` adjacent coordinates: for gradients whose entries come in whole rows (of an
/// embedding, a factorisation machine, one weight per class). About (log2(1/density) + 2) / columns bits per entry. The
/// last row may be shorter. An input of which a row is not whole is refused with `invalid_value`, which names the
/// coordinate.
struct whole_rows {
    std::size_t columns = 1;  ///< from 1 to 65535

    static constexpr const char* name = "whole_rows";
    static constexpr index_coding coding = index_coding::whole_rows;
    friend constexpr bool operator==(whole_rows, whole_rows) = default;
};

/// Chooses, for each message, the smallest of the other codings but `whole_rows`.
struct smallest {
    static constexpr const char* name = "smallest";
    static constexpr index_coding coding = index_coding::smallest;
    friend constexpr bool operator==(smallest, smallest) = default;
};

}}}  // namespace rill::RILL_ABI::compress
