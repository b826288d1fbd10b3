#pragma once

#include <rill/core/random.hpp>
#include <rill/train/dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

/// Random features; the label is the class whose column, of the first `classes`, is largest: linearly separable.
inline rill::train::dataset random_dataset(std::size_t rows, std::size_t columns, int classes, std::uint64_t seed = 1) {
    rill::random_sequence random(rill::random_key{seed});
    rill::train::dataset data{.rows = rows,
                              .columns = columns,
                              .classes = classes,
                              .features = rill::aligned_vector<float>(rows * columns),
                              .labels = std::vector<std::int32_t>(rows)};
    for (float& value : data.features) value = random.uniform();
    for (std::size_t r = 0; r < rows; ++r) {
        const auto row = data.row(r).first(static_cast<std::size_t>(classes));
        data.labels[r] = static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
    }
    return data;
}

inline std::vector<std::uint32_t> first_rows(std::size_t count) {
    std::vector<std::uint32_t> rows(count);
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
}
