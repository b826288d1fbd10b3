#pragma once

#include <rill/core/random.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Random rows of up to `most` entries. The label is 1 where the columns below the middle outweigh the others, else -1.
inline rill::train::sparse_dataset random_sparse(std::size_t rows, std::size_t columns, std::size_t most,
                                                 bool has_values = true, std::uint64_t seed = 1) {
    rill::random_sequence random(rill::random_key{seed});
    rill::train::sparse_dataset data{.rows = rows, .columns = columns};
    for (std::size_t r = 0; r < rows; ++r) {
        std::vector<std::uint32_t> row(1 + random.below(most));
        for (std::uint32_t& column : row) column = static_cast<std::uint32_t>(random.below(columns));
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        float balance = 0;
        for (const std::uint32_t column : row) {
            const float value = has_values ? random.uniform() : 1.0F;
            balance += column < columns / 2 ? value : -value;
            data.indices.push_back(column);
            if (has_values) data.values.push_back(value);
        }
        data.labels.push_back(balance > 0 ? 1.0F : -1.0F);
        data.starts.push_back(data.indices.size());
    }
    return data;
}

/// The same rows with their zeros, and classes for labels.
inline rill::train::dataset densified(const rill::train::sparse_dataset& data) {
    rill::train::dataset dense{.rows = data.rows,
                               .columns = data.columns,
                               .classes = 2,
                               .features = rill::aligned_vector<float>(data.rows * data.columns, 0.0F),
                               .labels = std::vector<std::int32_t>(data.rows)};
    for (std::size_t r = 0; r < data.rows; ++r) {
        const rill::train::sparse_row row = data.row(r);
        for (std::size_t i = 0; i < row.size(); ++i) dense.features[r * data.columns + row.columns[i]] = row.value(i);
        dense.labels[r] = data.labels[r] > 0 ? 1 : 0;
    }
    return dense;
}
