#pragma once

#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/train/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// One sample: strictly ascending columns and, in the same order, their values. Without values each of them is 1.
struct sparse_row {
    std::span<const std::uint32_t> columns{};
    std::span<const float> values{};

    std::size_t size() const { return columns.size(); }
    float value(std::size_t i) const { return values.empty() ? 1.0F : values[i]; }
};

/// Labelled samples of which most features are 0: compressed rows (CSR). Memory: 4 bytes per feature that is not 0, 4
/// more where values differ from 1, and 12 per row.
struct sparse_dataset {
    std::size_t rows = 0;
    std::size_t columns = 0;               ///< at most 2³² - 1
    std::vector<std::uint64_t> starts{0};  ///< rows + 1; row i holds the entries `[starts[i], starts[i + 1])`
    std::vector<std::uint32_t> indices{};  ///< of each entry, its column, ascending within a row
    std::vector<float> values{};           ///< of each entry; empty if all are 1
    std::vector<float> labels{};           ///< rows: a class, a sign or a number, as the objective takes it

    sparse_row row(std::size_t i) const {
        const auto begin = static_cast<std::size_t>(starts[i]);
        const std::size_t count = static_cast<std::size_t>(starts[i + 1]) - begin;
        return {std::span(indices).subspan(begin, count),
                values.empty() ? std::span<const float>() : std::span(values).subspan(begin, count)};
    }
};

/// Some rows of a `sparse_dataset`.
using sparse_batch = batch_of<sparse_dataset>;

}}}  // namespace rill::RILL_ABI::train
