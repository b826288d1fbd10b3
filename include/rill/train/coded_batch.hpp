#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/minibatches.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// What one worker of a coded reduction computes on, in each step: the rows of a dataset that a `coded_allocation`
/// gives it, each with its coefficient as weight. Any objective whose batch has weights then computes the worker's
/// coded gradient, and the root decodes the gradient of the mean loss of all rows.
///
/// Models `BatchSource`. The dataset must outlive it and have as many rows as the allocation has points.
class coded_batch {
  public:
    coded_batch(const dataset& data, const coded_allocation& allocation, rank_t rank) : data_(&data) {
        RILL_EXPECTS(data.rows == allocation.points(), "coded_batch: a dataset with as many rows as were allocated");
        const double each = 1.0 / static_cast<double>(allocation.points());
        for (const data_share& share : allocation.shares_of(rank))
            for (std::size_t row = share.first; row < share.last; ++row) {
                rows_.push_back(static_cast<std::uint32_t>(row));
                weights_.push_back(share.coefficient * each);
            }
    }

    /// How many rows the worker reads for one gradient.
    std::size_t load() const { return rows_.size(); }

    /// Valid as long as this lives unchanged.
    batch next() const { return {*data_, rows_, weights_}; }

    /// The batch is the same in each step: there is nothing to save.
    template <class Writer>
    void save(Writer&, std::string_view) const {}
    template <class Reader>
    void restore(const Reader&, std::string_view) {}

  private:
    const dataset* data_;
    std::vector<std::uint32_t> rows_;
    std::vector<double> weights_;
};

static_assert(BatchSource<coded_batch, batch>);

}}}  // namespace rill::RILL_ABI::train
