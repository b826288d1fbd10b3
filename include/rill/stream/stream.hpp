#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/copy.hpp>
#include <rill/kernel/scatter.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/stream/stream_view.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace rill { inline namespace RILL_ABI {

/// Memory for sparse content.
template <Element T, IndexType Index>
struct stream_room {
    std::span<Index> indices;
    std::span<T> values;
};

/// A vector over `range()`, held sparse (sorted unique indices and their values, structure of arrays) or dense. An
/// absent coordinate stands for the neutral element of the fold. Memory only grows: a stream that is reused allocates
/// nothing once it has held its largest content.
template <Element T, IndexType Index = std::uint32_t>
class stream {
  public:
    using value_type = T;
    using index_type = Index;

    stream() = default;
    /// Makes a stream that is empty and sparse over `[0, dimension)`.
    explicit stream(std::size_t dimension) { clear({0, dimension}); }

    bool is_dense() const { return dense_; }
    segment range() const { return range_; }
    std::size_t dimension() const { return range_.size(); }
    std::size_t count() const { return values_.size(); }
    std::span<const T> values() const { return span_of(values_); }
    std::span<T> values() { return span_of(values_); }
    std::span<const Index> indices() const { return span_of(indices_); }

    stream_view<T, Index> view() const {
        if (dense_) return {range_, values()};
        return {range_, sparse_view<T, Index>{indices(), values()}};
    }
    stream_view<T, Index> view(segment part) const { return view().slice(part); }

    /// Makes the stream empty and sparse over `range`.
    void clear(segment range) {
        RILL_EXPECTS(range.end == 0 || range.end - 1 <= std::numeric_limits<Index>::max(),
                     "a stream's coordinates must fit its index type");
        range_ = range;
        dense_ = false;
        indices_.clear();
        values_.clear();
    }

    /// Copies `source`, range and form included.
    void assign(const stream_view<T, Index>& source) {
        clear(source.range());
        dense_ = source.is_dense();
        indices_.assign(source.indices().begin(), source.indices().end());
        values_.assign(source.values().begin(), source.values().end());
    }

    /// Appends an entry; sparse streams only.
    void push_back(std::size_t coordinate, T value) {
        RILL_EXPECTS(!dense_, "a dense stream has all its coordinates");
        RILL_EXPECTS(range_.contains(coordinate), "a coordinate must lie in the stream's range");
        RILL_EXPECTS(indices_.empty() || indices_.back() < coordinate, "coordinates must be pushed in ascending order");
        indices_.push_back(static_cast<Index>(coordinate));
        values_.push_back(value);
    }

    /// Room for sparse content, to be written through the spans: `make_sparse` provides it for up to `count` entries,
    /// `shrink` keeps the first ones.
    stream_room<T, Index> make_sparse(segment range, std::size_t count) {
        clear(range);
        indices_.resize(count);
        values_.resize(count);
        return {span_of(indices_), span_of(values_)};
    }
    void shrink(std::size_t count) {
        RILL_EXPECTS(!dense_ && count <= values_.size(), "shrink keeps the first entries of sparse content");
        indices_.resize(count);
        values_.resize(count);
    }

    /// Makes the stream dense over `range`, with uninitialised values.
    std::span<T> make_dense(segment range) {
        clear(range);
        dense_ = true;
        values_.resize(range.size());
        return span_of(values_);
    }

    friend bool operator==(const stream& a, const stream& b) {
        return a.range_ == b.range_ && a.dense_ == b.dense_ && a.indices_ == b.indices_ && a.values_ == b.values_;
    }

  private:
    segment range_{};
    aligned_vector<Index> indices_;
    aligned_vector<T> values_;
    bool dense_ = false;
};

/// Writes `source` into `target` (`target.size() == source.range().size()`), absent coordinates as `neutral`.
template <Element T, IndexType Index, Executor Exec = serial>
void copy_dense(const stream_view<T, Index>& source, std::span<T> target, T neutral, const Exec& executor = {}) {
    RILL_EXPECTS(target.size() == source.range().size(), "the target of copy_dense must have the size of the range");
    kernel::run_tasks(executor, kernel::tasks_for(executor, target.size()), [&](segment part) {
        const std::size_t first = source.range().begin;
        const auto piece = source.slice({first + part.begin, first + part.end});
        const auto to = target.subspan(part.begin, part.size());
        if (piece.is_dense()) {
            kernel::copy(piece.values(), to);
            return;
        }
        detail::fill_elements(to.data(), to.size(), neutral);
        kernel::scatter_assign(piece.pairs(), piece.range().begin, to);
    });
}

}}  // namespace rill::RILL_ABI
