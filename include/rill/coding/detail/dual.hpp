#pragma once

#include <rill/coding/detail/linear.hpp>
#include <rill/core/config.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI::codes::detail {

/// All decoding rows of a code at once: `base` + any combination of the rows of `null`, which are orthonormal, span
/// what times B vanishes, and are orthogonal to `base`.
struct dual {
    matrix null;               ///< a column for each worker
    std::vector<double> base;  ///< an element for each worker
};

/// The dual of a matrix B whose rank is at most `most`; nothing tells whether any row reaches 1 at all.
inline dual dual_of(const matrix& b, std::size_t most) {
    matrix transposed{b.columns, b.rows};
    for (std::size_t i = 0; i < b.rows; ++i)
        for (std::size_t j = 0; j < b.columns; ++j) transposed[j][i] = b[i][j];
    constexpr double cutoff = 1e-12;
    dual d{orthogonal_complement(orthogonal_rows(std::move(transposed), cutoff, most)), std::vector<double>(b.rows)};
    least_squares(orthogonal_rows(b, cutoff, most), std::vector<double>(b.columns, 1.0), d.base);
    for (std::size_t i = 0; i < d.null.rows; ++i)
        add(-dot(d.null[i], d.base.data(), b.rows), d.null[i], d.base.data(), b.rows);
    return d;
}

/// The decoding row that vanishes at the `lost` workers, the shortest of them; nothing where there is none, or where it
/// cannot be told from there being none.
inline std::vector<double> row_without(const dual& d, const std::vector<int>& lost) {
    std::vector<double> row = d.base;
    if (lost.empty()) return row;
    if (lost.size() > d.null.rows) return {};
    matrix conditions{lost.size(), d.null.rows};
    std::vector<double> products(lost.size());
    for (std::size_t i = 0; i < lost.size(); ++i) {
        const auto worker = static_cast<std::size_t>(lost[i]);
        for (std::size_t j = 0; j < d.null.rows; ++j) conditions[i][j] = d.null[j][worker];
        products[i] = -d.base[worker];
    }
    if (conditions.rows == conditions.columns) {
        if (!solve_square(conditions, products)) return {};
    } else {
        const orthogonal_rows independent(std::move(conditions), 1e-13, lost.size());
        if (independent.rank < lost.size()) return {};
        products = shortest_solution(independent, products);
    }
    for (std::size_t j = 0; j < d.null.rows; ++j) add(products[j], d.null[j], row.data(), row.size());
    for (const int worker : lost) row[static_cast<std::size_t>(worker)] = 0;
    return row;
}

}  // namespace rill::inline RILL_ABI::codes::detail
