#pragma once

#include <rill/core/coding.hpp>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Index codings: policies that say how the indices of a sparse frame are written. All are lossless.

/// Four or eight bytes an index; frames are views, nothing is written anew.
struct raw_indices {
    static constexpr const char* name = "raw_indices";
    static constexpr index_coding coding = index_coding::raw;
    friend constexpr bool operator==(raw_indices, raw_indices) = default;
};

/// Gaps between indices, bit-packed by blocks: about log2(1/density) + 3 bits an index.
struct packed_gaps {
    static constexpr const char* name = "packed_gaps";
    static constexpr index_coding coding = index_coding::packed_gaps;
    friend constexpr bool operator==(packed_gaps, packed_gaps) = default;
};

/// One bit a coordinate.
struct bitmap {
    static constexpr const char* name = "bitmap";
    static constexpr index_coding coding = index_coding::bitmap;
    friend constexpr bool operator==(bitmap, bitmap) = default;
};

/// By Elias and Fano: about log2(1/density) + 2 bits an index, one bit a coordinate from a density of a third on.
struct elias_fano {
    static constexpr const char* name = "elias_fano";
    static constexpr index_coding coding = index_coding::elias_fano;
    friend constexpr bool operator==(elias_fano, elias_fano) = default;
};

/// A bitmap whose bytes are coded by Huffman: near the entropy of indices at random from a density of a tenth on.
struct huffman_bitmap {
    static constexpr const char* name = "huffman_bitmap";
    static constexpr index_coding coding = index_coding::huffman;
    friend constexpr bool operator==(huffman_bitmap, huffman_bitmap) = default;
};

/// For each message the smallest of the others.
struct smallest {
    static constexpr const char* name = "smallest";
    static constexpr index_coding coding = index_coding::smallest;
    friend constexpr bool operator==(smallest, smallest) = default;
};

}}}  // namespace rill::RILL_ABI::compress
