#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// A read-only stream over the coordinates `range`: dense (one value per coordinate) or sparse (absolute indices, all
/// in `range`). A slice of a view is a view; slicing a sparse one costs two binary searches.
template <Element T, IndexType Index = std::uint32_t>
class stream_view {
  public:
    constexpr stream_view() = default;
    /// Dense: `values.size() == range.size()`.
    constexpr stream_view(segment range, std::span<const T> values) : range_(range), values_(values), dense_(true) {}
    /// Sparse: strictly ascending indices in `range`.
    constexpr stream_view(segment range, sparse_view<T, Index> pairs)
        : range_(range), indices_(pairs.indices), values_(pairs.values) {}

    constexpr bool is_dense() const { return dense_; }
    constexpr segment range() const { return range_; }
    /// Entries present: `range().size()` when dense.
    constexpr std::size_t count() const { return values_.size(); }
    constexpr std::span<const T> values() const { return values_; }
    /// Empty when dense.
    constexpr std::span<const Index> indices() const { return indices_; }
    constexpr sparse_view<T, Index> pairs() const { return {indices_, values_}; }

    /// The part of this view in `part`, which must lie in `range()`.
    [[gnu::noinline]] constexpr stream_view slice(segment part) const {
        RILL_EXPECTS(range_.contains(part), "a slice must lie in the range of its stream");
        if (part == range_) return *this;
        if (dense_) return {part, values_.subspan(part.begin - range_.begin, part.size())};
        const std::size_t first = position(part.begin);
        const std::size_t last = part.end == range_.end ? indices_.size() : position(part.end);
        return {part,
                sparse_view<T, Index>{indices_.subspan(first, last - first), values_.subspan(first, last - first)}};
    }

  private:
    constexpr std::size_t position(std::size_t coordinate) const {
        return first_not_below(indices_.data(), 0, indices_.size(), coordinate);
    }

    segment range_{};
    std::span<const Index> indices_{};
    std::span<const T> values_{};
    bool dense_ = false;
};

}}  // namespace rill::RILL_ABI
