#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/union_size.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// Counts on real gradients how often coordinates are selected, and predicts the size of unions. Models `UnionModel`.
///
/// Ranks with similar data select similar coordinates, so that their union is smaller than `uniform_density` predicts.
/// Here each rank selects each coordinate of a bucket independently, with the bucket's frequency. Small buckets resolve
/// where gradients are large, but need many selections: with few, buckets of one coordinate show an overlap that does
/// not exist. Memory: 8 bytes per bucket. Cost of a query: a power for each bucket that its range touches.
class selection_frequency {
  public:
    explicit selection_frequency(std::size_t dimension, std::size_t bucket = 512)
        : dimension_(dimension), bucket_(bucket) {
        RILL_EXPECTS(bucket > 0, "cost::selection_frequency: a bucket has at least one coordinate");
        counts_.assign((dimension + bucket - 1) / bucket, 0);
    }

    std::size_t dimension() const { return dimension_; }
    /// The number of selections counted.
    std::uint64_t selections() const { return selections_; }
    /// The mean share of the coordinates that a selection contains.
    double density() const {
        std::uint64_t all = 0;
        for (const std::uint64_t count : counts_) all += count;
        const double places = static_cast<double>(dimension_) * static_cast<double>(selections_);
        return places == 0 ? 0 : static_cast<double>(all) / places;
    }

    /// Counts one selection: the coordinates that a rank sent of one gradient.
    template <IndexType Index>
    void add(std::span<const Index> selected) {
        for (const Index i : selected) {
            RILL_EXPECTS(i < dimension_, "cost::selection_frequency: a coordinate is outside the dimension");
            ++counts_[static_cast<std::size_t>(i) / bucket_];
        }
        ++selections_;
    }

    double operator()(segment range, int contributors) const {
        RILL_EXPECTS(range.end <= dimension_, "cost::selection_frequency: the range is outside the dimension");
        double entries = 0;
        for (std::size_t begin = range.begin; begin < range.end;) {
            const std::size_t b = begin / bucket_;
            const std::size_t end = std::min(range.end, (b + 1) * bucket_);
            entries += static_cast<double>(end - begin) * -std::expm1(contributors * std::log1p(-frequency(b)));
            begin = end;
        }
        return entries;
    }

  private:
    double frequency(std::size_t b) const {
        const std::size_t size = std::min(dimension_, (b + 1) * bucket_) - b * bucket_;
        const double places = static_cast<double>(size) * static_cast<double>(selections_);
        return places == 0 ? 0 : static_cast<double>(counts_[b]) / places;
    }

    std::size_t dimension_;
    std::size_t bucket_;
    std::vector<std::uint64_t> counts_;
    std::uint64_t selections_ = 0;
};

static_assert(UnionModel<selection_frequency>);

}}}  // namespace rill::RILL_ABI::cost
