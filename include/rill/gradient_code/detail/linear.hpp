// The linear algebra of decoding, for systems of tens to hundreds of unknowns.
#pragma once

#include <rill/core/config.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code::detail {

/// A dense matrix, row by row.
struct matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<double> values = std::vector<double>(rows * columns);

    double* operator[](std::size_t row) { return values.data() + row * columns; }
    const double* operator[](std::size_t row) const { return values.data() + row * columns; }
};

inline double dot(const double* x, const double* y, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += x[i] * y[i];
    return sum;
}
/// y += factor · x
inline void add(double factor, const double* x, double* y, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

/// Solves the square system A x = b by elimination with partial pivoting; x replaces b. Returns false if a pivot is
/// exactly zero; A and b are then unspecified. A is overwritten in any case.
inline bool solve_square(matrix& a, std::vector<double>& b) {
    const std::size_t size = a.rows;
    for (std::size_t k = 0; k < size; ++k) {
        std::size_t pivot = k;
        for (std::size_t i = k + 1; i < size; ++i)
            if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
        if (!(std::abs(a[pivot][k]) > 0)) return false;
        if (pivot != k) {
            std::swap_ranges(a[k] + k, a[k] + size, a[pivot] + k);
            std::swap(b[k], b[pivot]);
        }
        const double inverse = 1 / a[k][k];
        for (std::size_t i = k + 1; i < size; ++i) {
            const double factor = -a[i][k] * inverse;
            add(factor, a[k] + k + 1, a[i] + k + 1, size - k - 1);
            b[i] += factor * b[k];
        }
    }
    for (std::size_t k = size; k-- > 0;) b[k] = (b[k] - dot(a[k] + k + 1, b.data() + k + 1, size - k - 1)) / a[k][k];
    return true;
}

/// Orthonormal vectors that span the rows of a matrix: Gram-Schmidt, done twice, the longest remainder first.
///
/// Row `order[j]` of the matrix is Σ over i ≤ j of `r[i][j]` · `q[i]` for j < `rank`. The remainders of the other rows
/// are at most `cutoff` times the longest row, unless `rank` has reached `most`.
struct orthogonal_rows {
    std::size_t rank = 0;
    std::vector<std::size_t> order;
    matrix q;
    matrix r;

    orthogonal_rows(matrix rows, double cutoff, std::size_t most)
        : order(rows.rows), q(std::move(rows)), r{q.rows, q.rows} {
        std::vector<double> lengths(q.rows);
        for (std::size_t i = 0; i < q.rows; ++i) {
            order[i] = i;
            lengths[i] = std::sqrt(dot(q[i], q[i], q.columns));
        }
        const double least = cutoff * (q.rows == 0 ? 0 : *std::max_element(lengths.begin(), lengths.end()));
        for (; rank < std::min(q.rows, most); ++rank) {
            bring_longest(lengths);
            subtract_earlier();
            const double length = std::sqrt(dot(q[rank], q[rank], q.columns));
            if (!(length > least)) return;
            r[rank][rank] = length;
            for (std::size_t c = 0; c < q.columns; ++c) q[rank][c] /= length;
            subtract_from_later(lengths);
        }
    }

  private:
    void bring_longest(std::vector<double>& lengths) {
        const auto longest = static_cast<std::size_t>(
            std::max_element(lengths.begin() + static_cast<std::ptrdiff_t>(rank), lengths.end()) - lengths.begin());
        if (longest == rank) return;
        std::swap(lengths[rank], lengths[longest]);
        std::swap(order[rank], order[longest]);
        std::swap_ranges(q[rank], q[rank] + q.columns, q[longest]);
        for (std::size_t i = 0; i < rank; ++i) std::swap(r[i][rank], r[i][longest]);
    }
    void subtract_earlier() {
        for (std::size_t i = 0; i < rank; ++i) {
            const double left = dot(q[i], q[rank], q.columns);
            add(-left, q[i], q[rank], q.columns);
            r[i][rank] += left;
        }
    }
    void subtract_from_later(std::vector<double>& lengths) {
        for (std::size_t j = rank + 1; j < q.rows; ++j) {
            r[rank][j] = dot(q[rank], q[j], q.columns);
            add(-r[rank][j], q[rank], q[j], q.columns);
            lengths[j] = std::sqrt(dot(q[j], q[j], q.columns));
        }
    }
};

/// Finds x such that Σ x[i] · row i comes closest to `target`; the rows are those from which `rows` was made. x is 0
/// for rows past the rank. Returns the distance.
inline double least_squares(const orthogonal_rows& rows, std::span<const double> target, std::span<double> x) {
    std::vector<double> remainder(target.begin(), target.end());
    std::vector<double> along(rows.rank);
    for (int pass = 0; pass < 2; ++pass)
        for (std::size_t i = 0; i < rows.rank; ++i) {
            const double part = dot(rows.q[i], remainder.data(), remainder.size());
            add(-part, rows.q[i], remainder.data(), remainder.size());
            along[i] += part;
        }
    std::fill(x.begin(), x.end(), 0.0);
    for (std::size_t i = rows.rank; i-- > 0;) {
        along[i] /= rows.r[i][i];
        x[rows.order[i]] = along[i];
        for (std::size_t j = 0; j < i; ++j) along[j] -= rows.r[j][i] * along[i];
    }
    return std::sqrt(dot(remainder.data(), remainder.data(), remainder.size()));
}

/// Returns the shortest x whose product with row i is `products[i]`. The rows are those from which `rows` was made;
/// they are independent.
inline std::vector<double> shortest_solution(const orthogonal_rows& rows, std::span<const double> products) {
    std::vector<double> x(rows.q.columns);
    std::vector<double> along(rows.rank);
    for (std::size_t j = 0; j < rows.rank; ++j) {
        double rest = products[rows.order[j]];
        for (std::size_t i = 0; i < j; ++i) rest -= rows.r[i][j] * along[i];
        along[j] = rest / rows.r[j][j];
        add(along[j], rows.q[j], x.data(), x.size());
    }
    return x;
}

/// Returns orthonormal rows that complete the first `rows.rank` rows of `rows.q` to a basis.
inline matrix orthogonal_complement(const orthogonal_rows& rows) {
    const std::size_t size = rows.q.columns;
    const std::size_t missing = size - rows.rank;
    matrix units{size, size};
    for (std::size_t u = 0; u < size; ++u) {
        units[u][u] = 1;
        for (int pass = 0; pass < 2; ++pass)
            for (std::size_t i = 0; i < rows.rank; ++i) add(-dot(rows.q[i], units[u], size), rows.q[i], units[u], size);
    }
    orthogonal_rows rest(std::move(units), 0, missing);
    rest.q.values.resize(missing * size);
    rest.q.rows = missing;
    return std::move(rest.q);
}

}}}  // namespace rill::RILL_ABI::gradient_code::detail
