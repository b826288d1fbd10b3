// Samples as sparse as text.
#pragma once

#include <rill/core/random.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

/// Rows of 117 columns, of which the k-th most frequent occurs 1 / k times as often as the first, in random places;
/// with labels without meaning.
inline rill::train::sparse_dataset text_like(std::size_t rows, std::size_t columns, std::uint64_t seed = 1) {
    rill::random_sequence random(rill::random_key{seed});
    rill::train::sparse_dataset data{.rows = rows, .columns = columns};
    for (std::size_t r = 0; r < rows; ++r) {
        std::vector<std::uint32_t> row(117);
        for (std::uint32_t& column : row) {
            const double place =
                std::exp(static_cast<double>(random.uniform()) * std::log(static_cast<double>(columns)));
            column = static_cast<std::uint32_t>(rill::mix64(static_cast<std::uint64_t>(place)) % columns);
        }
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        data.indices.insert(data.indices.end(), row.begin(), row.end());
        data.starts.push_back(data.indices.size());
        data.labels.push_back(random.below(2) == 0 ? 1.0F : -1.0F);
    }
    return data;
}

}  // namespace bench
