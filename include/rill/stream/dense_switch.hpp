#pragma once

#include <rill/core/coding.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/index_elias_fano.hpp>
#include <rill/kernel/index_rows.hpp>
#include <rill/stream/detail/value_length.hpp>

#include <algorithm>
#include <cstddef>

namespace rill { inline namespace RILL_ABI {

/// How many coordinates of a range of `size` operands have together, if each has its coordinates at random and without
/// regard to the others: N (1 - Π (1 - c/N)). The same for the same counts in the same order. Source: SparCML,
/// appendix B.
class expected_union {
  public:
    explicit constexpr expected_union(std::size_t size) : size_(size) {}

    constexpr void add(std::size_t count) {
        sum_ += count;
        if (size_ != 0) absent_ *= 1 - static_cast<double>(count) / static_cast<double>(size_);
    }
    constexpr std::size_t count() const {
        const double rounded = static_cast<double>(size_) * (1 - absent_) + 0.5;
        return std::min(std::min(sum_, size_), static_cast<std::size_t>(rounded));
    }

  private:
    std::size_t size_;
    std::size_t sum_ = 0;
    double absent_ = 1;
};

namespace detail {
/// The bytes of the indices of `count` coordinates of `range`: exact for raw indices, bitmaps, whole rows and
/// Elias-Fano, which stands for the other codings too. They are seldom a fifth smaller or larger.
[[gnu::noinline]] inline std::size_t estimated_index_bytes(const coding& codes, std::size_t index_bytes,
                                                           std::size_t count, segment range) {
    switch (codes.indices) {
        case index_coding::dense:
        case index_coding::raw: return count * index_bytes;
        case index_coding::bitmap: return (range.size() + 7) / 8;
        case index_coding::whole_rows: return kernel::whole_rows{codes.row}.size_of(count, range);
        case index_coding::packed_gaps:
        case index_coding::elias_fano:
        case index_coding::huffman:
        case index_coding::smallest: break;
    }
    return kernel::elias_fano::size_of(count, range);
}
}  // namespace detail

/// When a fold changes from the sparse to the dense form: when the frame of the sparse form would be larger than
/// `factor` times that of the dense form, in the coding in which sums travel. The number of the sparse form's entries
/// is estimated before the fold from the counts of the operands alone (`expected_union`), so that all ranks that fold
/// the same operands decide alike. A factor of 0 switches for every result that is not empty, a very large one never.
/// Where the identity is infinite (`max`, `min`) and finished parts are rounded, sums stay sparse at any factor.
/// Source: SparCML, section 5.1, where indices and values are raw and supports disjoint.
struct dense_switch {
    double factor = 1.0;

    /// `count`: of the coordinates in the sparse form.
    template <class T, class Index>
    constexpr bool wants_dense(std::size_t count, segment range, const coding& codes = {}) const {
        const std::size_t sparse = detail::value_length(codes, sizeof(T), count) +
                                   detail::estimated_index_bytes(codes, sizeof(Index), count, range);
        const std::size_t dense = detail::value_length(codes, sizeof(T), range.size());
        return count != 0 && static_cast<double>(sparse) > factor * static_cast<double>(dense);
    }
    friend constexpr bool operator==(dense_switch, dense_switch) = default;
};

}}  // namespace rill::RILL_ABI
