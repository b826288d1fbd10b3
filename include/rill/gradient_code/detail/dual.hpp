#pragma once

#include <rill/core/config.hpp>
#include <rill/gradient_code/detail/linear.hpp>

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code::detail {

/// All decoding rows of a code: `base` plus any linear combination of the rows of `null`. These are orthonormal,
/// orthogonal to `base`, and span the rows x with x·B = 0.
struct dual {
    matrix null;               ///< a column for each worker
    std::vector<double> base;  ///< an element for each worker
};

/// Returns the dual of a matrix B whose rank is at most `most`. It does not tell whether any row a has a·B = 1.
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

/// Returns the products for which `base` + Σ products[j] · `null[j]` is zero at the `lost` workers, or closest to zero;
/// of several the shortest. Returns nothing if the equations are linearly dependent.
inline std::vector<double> products_without(const dual& d, const std::vector<int>& lost) {
    const std::size_t unknowns = d.null.rows;
    std::vector<double> wanted(lost.size());
    for (std::size_t i = 0; i < lost.size(); ++i) wanted[i] = -d.base[static_cast<std::size_t>(lost[i])];
    if (lost.size() > unknowns) {
        matrix parts{unknowns, lost.size()};
        for (std::size_t j = 0; j < unknowns; ++j)
            for (std::size_t i = 0; i < lost.size(); ++i) parts[j][i] = d.null[j][lost[i]];
        std::vector<double> products(unknowns);
        least_squares(orthogonal_rows(std::move(parts), 1e-13, unknowns), wanted, products);
        return products;
    }
    matrix equations{lost.size(), unknowns};
    for (std::size_t i = 0; i < lost.size(); ++i)
        for (std::size_t j = 0; j < unknowns; ++j) equations[i][j] = d.null[j][lost[i]];
    if (lost.size() == unknowns) {
        if (!solve_square(equations, wanted)) return {};
        return wanted;
    }
    const orthogonal_rows independent(std::move(equations), 1e-13, lost.size());
    if (independent.rank < lost.size()) return {};
    return shortest_solution(independent, wanted);
}

/// A decoding row a with an element for each worker, and a bound on ‖a·B − 1‖₂ over the survivors.
struct bounded_row {
    std::vector<double> row;
    double error = std::numeric_limits<double>::infinity();
};

/// The rounding errors of a `dual` of the matrix B.
struct dual_errors {
    double base = 0;                  ///< ‖base·B − 1‖₂
    double null = 0;                  ///< the largest ‖null[j]·B‖₂
    std::vector<double> row_lengths;  ///< ‖b_i‖₂

    dual_errors(const dual& d, const matrix& b) {
        for (std::size_t i = 0; i < b.rows; ++i) row_lengths.push_back(std::sqrt(dot(b[i], b[i], b.columns)));
        base = length_of_product(d.base.data(), b, -1);
        for (std::size_t j = 0; j < d.null.rows; ++j) null = std::max(null, length_of_product(d.null[j], b, 0));
    }

  private:
    static double length_of_product(const double* row, const matrix& b, double start) {
        std::vector<double> sums(b.columns, start);
        for (std::size_t i = 0; i < b.rows; ++i) add(row[i], b[i], sums.data(), b.columns);
        return std::sqrt(dot(sums.data(), sums.data(), sums.size()));
    }
};

/// Returns the row a with a·B = 1 that does without the `lost` workers, whose elements have no meaning. Its error is
/// large if there is no such row.
inline bounded_row row_without(const dual& d, const dual_errors& errors, const std::vector<int>& lost) {
    const std::vector<double> products = products_without(d, lost);
    if (products.size() != d.null.rows) return {};
    bounded_row found{d.base, errors.base};
    for (std::size_t j = 0; j < products.size(); ++j) {
        add(products[j], d.null[j], found.row.data(), found.row.size());
        found.error += std::abs(products[j]) * errors.null;
    }
    for (const int worker : lost) {
        const auto w = static_cast<std::size_t>(worker);
        found.error += std::abs(found.row[w]) * errors.row_lengths[w];
    }
    return found;
}

}}}  // namespace rill::RILL_ABI::gradient_code::detail
