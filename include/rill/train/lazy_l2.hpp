#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Adds to `counts[c]` how many rows of the dataset have column c. The sum over the ranks is that of all data.
inline void count_columns(const sparse_dataset& data, std::span<std::int64_t> counts) {
    RILL_EXPECTS(counts.size() >= data.columns, "count_columns: a count for each column");
    for (const std::uint32_t column : data.indices) ++counts[column];
}

/// The penalty `½ strength · |w|²` of the weights, charged to the rows: each of the k rows that have a column pays for
/// its weight `½ strength · rows / k · w²`. So the mean over all rows is the whole penalty, and a batch pays for the
/// columns that it touches, without a pass over the others and without state.
///
/// A column of few rows pays much at once: a step is stable while rate · strength · rows / k, times the weight of a row
/// in the batch, stays below 2. Memory: 4 bytes per column. Source: Niu et al., Hogwild!, NIPS 2011, section 2.
class lazy_l2 {
  public:
    /// None.
    lazy_l2() = default;
    /// `counts`: how many of all `rows` have each column, the same on all ranks. Errors: `contract_violation` for a
    /// strength or a count that cannot be, which names the column.
    lazy_l2(double strength, std::span<const std::int64_t> counts, std::uint64_t rows) : factors_(counts.size()) {
        rill::detail::require_option(strength >= 0 && std::isfinite(strength), "train::lazy_l2: strength", strength,
                                     "at least 0 and finite");
        for (std::size_t c = 0; c < counts.size(); ++c) {
            if (counts[c] < 0 || static_cast<std::uint64_t>(counts[c]) > rows)
                rill::detail::refuse_option(text_of({"train::lazy_l2: the count of column ", c}),
                                            rill::detail::spelled_value(counts[c]),
                                            text_of({"from 0 to ", rows, ", the number of rows"}), no_rank);
            if (counts[c] > 0)
                factors_[c] = static_cast<float>(strength * static_cast<double>(rows) / static_cast<double>(counts[c]));
            if (!std::isfinite(factors_[c]))
                rill::detail::refuse_option("train::lazy_l2: strength", rill::detail::spelled_value(strength),
                                            text_of({"so small that its part for column ", c, " is finite"}), no_rank);
        }
    }

    bool is_none() const { return factors_.empty(); }
    std::size_t columns() const { return factors_.size(); }
    /// strength · rows / k
    float factor(std::size_t column) const { return factors_[column]; }

  private:
    std::vector<float> factors_;
};

}}}  // namespace rill::RILL_ABI::train
