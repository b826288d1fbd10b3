#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI {

/// How the values of a frame are written; the numbers are part of the wire format.
enum class value_coding : std::uint8_t { raw = 0, bf16 = 1, qsgd2 = 2, qsgd4 = 4, qsgd8 = 8 };

/// How the indices of a frame are written; the numbers are part of the wire format. `smallest` chooses among the others
/// for every message and never appears in a frame; `dense` means that there are no indices, because the frame has every
/// coordinate.
enum class index_coding : std::uint8_t {
    dense = 0,
    raw = 1,
    packed_gaps = 2,
    bitmap = 3,
    elias_fano = 4,
    huffman = 5,
    smallest = 255
};

/// Whether decoding gives back every value bit for bit.
constexpr bool is_lossless(value_coding coding) { return coding == value_coding::raw; }

/// Whether the expectation of a decoded value is the one that was coded.
constexpr bool is_unbiased(value_coding coding) { return coding != value_coding::bf16; }

/// Whether `coding` is QSGD, which quantises values by buckets to 2, 4 or 8 bits.
constexpr bool is_qsgd(value_coding coding) {
    return coding == value_coding::qsgd2 || coding == value_coding::qsgd4 || coding == value_coding::qsgd8;
}

/// Bits per value of a QSGD coding.
constexpr int qsgd_bits(value_coding coding) { return static_cast<int>(coding); }

/// How a stream is written into a frame.
struct coding {
    value_coding values = value_coding::raw;
    index_coding indices = index_coding::raw;
    std::uint32_t bucket = 1024;  ///< consecutive entries that share a scale; QSGD only

    /// Whether a frame of this coding is sent from the stream's own arrays, without a copy.
    constexpr bool is_view() const { return values == value_coding::raw && indices == index_coding::raw; }
    constexpr bool is_lossless() const { return rill::is_lossless(values); }
    constexpr std::uint64_t fingerprint() const {
        return (static_cast<std::uint64_t>(values) << 40) | (static_cast<std::uint64_t>(indices) << 32) | bucket;
    }
    friend constexpr bool operator==(const coding&, const coding&) = default;
};

/// Which codings the frames of a call may have, as far as types tell. What cannot come is not compiled, and refused.
struct coding_set {
    bool rounds = true;                             ///< value codings other than raw
    index_coding indices = index_coding::smallest;  ///< this one besides raw and dense; `smallest`: every one

    /// Whether all frames are sent from the stream's own arrays.
    constexpr bool has_only_views() const { return !rounds && indices == index_coding::raw; }
    constexpr bool has(index_coding coding) const {
        return coding == index_coding::raw || indices == index_coding::smallest || coding == indices;
    }
};

}}  // namespace rill::RILL_ABI
