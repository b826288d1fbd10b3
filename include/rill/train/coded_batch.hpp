#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/train/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// What one worker of a coded reduction computes on: the rows that a `coded_allocation` gives it, each with its
/// coefficient as weight. Any objective whose batch has weights then computes the worker's coded gradient, and the root
/// decodes the gradient of the mean loss of all rows.
class coded_batch {
  public:
    coded_batch(const coded_allocation& allocation, rank_t rank) : points_(allocation.points()) {
        const double each = 1.0 / static_cast<double>(allocation.points());
        for (const data_share& share : allocation.shares_of(rank))
            for (std::size_t row = share.first; row < share.last; ++row) {
                rows_.push_back(static_cast<std::uint32_t>(row));
                weights_.push_back(share.coefficient * each);
            }
    }

    /// How many rows the worker reads for one gradient.
    std::size_t load() const { return rows_.size(); }

    /// The batch, of a dataset with as many rows as the allocation has points. Valid as long as this lives unchanged.
    batch of(const dataset& data) const {
        RILL_EXPECTS(data.rows == points_, "coded_batch: a dataset with as many rows as were allocated");
        return {data, rows_, weights_};
    }

  private:
    std::size_t points_;
    std::vector<std::uint32_t> rows_;
    std::vector<double> weights_;
};

}}}  // namespace rill::RILL_ABI::train
