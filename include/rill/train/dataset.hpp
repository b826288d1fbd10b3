#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Labelled samples: a row-major matrix of features and one class per row. The ranks of a process may share it.
struct dataset {
    std::size_t rows = 0;
    std::size_t columns = 0;
    int classes = 0;
    aligned_vector<float> features;    ///< rows × columns
    std::vector<std::int32_t> labels;  ///< rows, each in `[0, classes)`

    std::span<const float> row(std::size_t i) const { return std::span(features).subspan(i * columns, columns); }
};

/// The rows that belong to `rank` of `size`: consecutive ranges of nearly equal size. Copies nothing.
inline segment shard(const dataset& data, rank_t rank, int size) {
    RILL_EXPECTS(size > 0 && rank >= 0 && rank < size, "shard: a rank of the group");
    return split(data.rows, static_cast<std::size_t>(size), static_cast<std::size_t>(rank));
}

/// Some rows of a dataset, by number and in this order, and their weights. It refers to data that must outlive it.
template <class Data>
struct batch_of {
    const Data& data;
    std::span<const std::uint32_t> rows;
    /// One weight for each row, of any sign; if empty, each row has 1 / rows. Loss and gradient are the weighted sums
    /// of those of the rows. With the coefficients of a gradient code as weights the gradient is a worker's coded one.
    std::span<const double> weights{};

    /// The weight of the i-th of `rows`.
    template <std::floating_point T>
    T weight(std::size_t i) const {
        return weights.empty() ? T{1} / static_cast<T>(rows.size()) : static_cast<T>(weights[i]);
    }
};

/// Some rows of a `dataset`.
using batch = batch_of<dataset>;

}}}  // namespace rill::RILL_ABI::train
