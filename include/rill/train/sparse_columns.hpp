#pragma once

#include <rill/core/checksum.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The samples of a `sparse_dataset` by columns (CSC). Memory: as the dataset, with 8 bytes per column.
struct sparse_columns {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<std::uint64_t> starts{0};  ///< columns + 1; column c holds the entries `[starts[c], starts[c + 1])`
    std::vector<std::uint32_t> indices{};  ///< of each entry, its row, ascending within a column
    std::vector<float> values{};           ///< of each entry; empty if all are 1
    std::vector<float> labels{};           ///< rows

    /// Whether the numbers of columns, entries and labels fit each other.
    bool is_consistent() const {
        return starts.size() == columns + 1 && starts.back() == indices.size() && labels.size() == rows &&
               (values.empty() || values.size() == indices.size());
    }
    /// Of the content. Cost: a pass over it.
    std::uint64_t fingerprint() const {
        const auto sum = [](const auto& all) { return checksum(std::as_bytes(std::span(all))); };
        return mix64(sum(starts), sum(indices), sum(values), sum(labels));
    }

    /// Strictly ascending rows and their values; without values each of them is 1.
    struct column_view {
        std::span<const std::uint32_t> rows{};
        std::span<const float> values{};

        std::size_t size() const { return rows.size(); }
        float value(std::size_t i) const { return values.empty() ? 1.0F : values[i]; }
    };
    column_view column(std::size_t c) const {
        const auto begin = static_cast<std::size_t>(starts[c]);
        const std::size_t count = static_cast<std::size_t>(starts[c + 1]) - begin;
        return {std::span(indices).subspan(begin, count),
                values.empty() ? std::span<const float>() : std::span(values).subspan(begin, count)};
    }
};

/// Sorts the entries by columns, in two passes.
inline sparse_columns by_columns(const sparse_dataset& data) {
    RILL_EXPECTS(data.rows <= std::numeric_limits<std::uint32_t>::max(), "by_columns: rows that 32 bits can number");
    sparse_columns made{.rows = data.rows,
                        .columns = data.columns,
                        .starts = std::vector<std::uint64_t>(data.columns + 1),
                        .indices = std::vector<std::uint32_t>(data.indices.size()),
                        .values = std::vector<float>(data.values.size()),
                        .labels = data.labels};
    for (const std::uint32_t c : data.indices) ++made.starts[c + 1];
    for (std::size_t c = 0; c < data.columns; ++c) made.starts[c + 1] += made.starts[c];
    std::vector<std::uint64_t> next(made.starts.begin(), made.starts.end() - 1);
    for (std::size_t r = 0; r < data.rows; ++r) {
        const sparse_row row = data.row(r);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto at = static_cast<std::size_t>(next[row.columns[i]]++);
            made.indices[at] = static_cast<std::uint32_t>(r);
            if (!made.values.empty()) made.values[at] = row.value(i);
        }
    }
    return made;
}

}}}  // namespace rill::RILL_ABI::train
